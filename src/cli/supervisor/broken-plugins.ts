import { HEADERS, listPlugins, type PluginRecord } from '../../contracts/index.ts';
import type { BrokenPlugin } from './control-protocol.ts';
import { nodeHttp } from './node-http.ts';

const ANSWER_MS = 2000;

/** Plugins that were left out, as the marketplace tells; none where it does not answer: a start must not fail for it. */
export async function brokenPlugins(url: string | null, internalSecret: string): Promise<BrokenPlugin[]> {
  if (url === null) return [];
  try {
    // By need: `svc status` uses this file too, and has no key to derive.
    const { serviceKey } = await import('../../kit/keys.ts');
    const headers = { [HEADERS.serviceKey]: serviceKey(internalSecret) };
    const { items } = listPlugins.reply.parse(await getJson(url + listPlugins.path, headers));
    return brokenOf(items);
  } catch {
    return [];
  }
}

/** The broken ones, each with its first fault and where in the manifest that is. */
export function brokenOf(plugins: readonly PluginRecord[]): BrokenPlugin[] {
  return plugins
    .filter(({ status }) => status === 'broken')
    .map(({ id, faults: [first] }) => ({
      id,
      message: first ? `${first.path === '' ? '' : `${first.path}: `}${first.message}` : 'the log says why',
    }));
}

function getJson(url: string, headers: Record<string, string>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const request = nodeHttp().get(url, { headers, agent: false, timeout: ANSWER_MS }, (response) => {
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
