import { HEADERS, listPlugins, type PluginRecord } from '../contracts/index.ts';
import type { BrokenPlugin } from './control-protocol.ts';
import { nodeHttp } from './node-http.ts';

const TIMEOUT_MS = 2000;

/**
 * Returns the plugins that failed to load. Returns an empty list if the marketplace service does not answer, so that
 * the start continues.
 */
export async function brokenPlugins(url: string | null, internalSecret: string): Promise<BrokenPlugin[]> {
  if (url === null) return [];
  try {
    // The module is loaded on demand, because `svc status` imports this file but does not need the key derivation.
    const { serviceKey } = await import('../kit/security/keys.ts');
    const headers = { [HEADERS.serviceKey]: serviceKey(internalSecret) };
    const { items } = listPlugins.reply.parse(await getJson(url + listPlugins.path, headers));
    return brokenOf(items);
  } catch {
    return [];
  }
}

/** Returns the broken plugins, each with its first problem and the path of the problem in the manifest. */
export function brokenOf(plugins: readonly PluginRecord[]): BrokenPlugin[] {
  return plugins
    .filter(({ status }) => status === 'broken')
    .map(({ id, faults: [first] }) => ({
      id,
      message: first ? `${first.path === '' ? '' : `${first.path}: `}${first.message}` : 'see the log',
    }));
}

function getJson(url: string, headers: Record<string, string>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const request = nodeHttp().get(url, { headers, agent: false, timeout: TIMEOUT_MS }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        try {
          resolve(JSON.parse(Buffer.concat(chunks).toString('utf8')));
        } catch (error) {
          reject(error);
        }
      });
    });
    request.on('timeout', () => request.destroy(new Error('no answer in time')));
    request.on('error', reject);
  });
}
