import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../../../src/kit/files/paths.ts';
import { createCrashPlatform } from '../crash-platform.ts';

/** Keys that all nodes share. */
const KEYS = `SVC_MASTER_KEY=${Buffer.alloc(32, 7).toString('base64url')}
GATEWAY_JWT_SECRET=${'j'.repeat(40)}
GATEWAY_INTERNAL_SECRET=${'i'.repeat(40)}
SVC_OPERATOR_CLIENT_ID=operator-of-the-bench
SVC_OPERATOR_CLIENT_SECRET=${'o'.repeat(40)}
`;

/** Duration of a handler that only waits, as for a service that it calls. */
export const HANDLER_MS = 50;

const webhook = (event: string, handler: string) => ({
  event,
  handler: `hooks.js#${handler}`,
  async: true,
  auth: { type: 'hmac', header: 'x-hub-signature-256', algorithm: 'sha256', prefix: 'sha256=' },
  idempotencyKey: 'header:x-github-delivery',
  rateLimit: { requestsPerMinute: 1_000_000_000 },
});

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: 'bench',
  version: '1.0.0',
  webhooks: [webhook('held', 'wait'), webhook('waiting', 'wait')],
};

/** An endpoint of the bench plugin. */
export interface Webhook {
  event: 'held' | 'waiting';
  path: string;
  secret: string;
}

/** A whole node (`svc up -d`) with the bench plugin, its own data folder, and the store of all nodes. */
export interface Node {
  /** Port and process of its gateway. */
  port: number;
  pid: number;
  svc(...args: string[]): Promise<unknown>;
  stop(): Promise<void>;
}

export async function startNode(storeUrl: string): Promise<Node> {
  const platform = await createCrashPlatform(packageRoot, {
    store: { url: storeUrl },
    cluster: { enabled: true },
    gateway: { port: 0, publicUrl: 'http://svc.example' },
  });
  const plugin = join(platform.folder, 'plugins/bench');
  await mkdir(plugin, { recursive: true });
  await writeFile(join(plugin, 'svc.plugin.json'), JSON.stringify(MANIFEST));
  await writeFile(join(plugin, 'package.json'), '{"type":"module"}');
  const wait = `export const wait = () => new Promise((resolve) => setTimeout(resolve, ${HANDLER_MS}, null));\n`;
  await writeFile(join(plugin, 'hooks.js'), wait);
  await writeFile(join(platform.folder, '.env'), KEYS, { mode: 0o600 });
  const svc = async (...args: string[]): Promise<unknown> => {
    const { exitCode, json } = await platform.svc(...args);
    if (exitCode !== 0) throw new Error(`svc ${args.join(' ')} failed: ${JSON.stringify(json)}`);
    return json.result;
  };
  try {
    await svc('migrate', '--yes');
    await svc('up', '-d');
    const { services } = await platform.status();
    const { url, pid } = services.find(({ name }) => name === 'gateway')!;
    return { port: Number(new URL(url!).port), pid: pid!, svc, stop: () => platform.dispose() };
  } catch (error) {
    await platform.dispose();
    throw error;
  }
}

/** Provisions and pauses a webhook: its deliveries are accepted, and its handlers run after `resume`. */
export async function pausedWebhook({ svc }: Node, event: Webhook['event']): Promise<Webhook> {
  const { secret } = (await svc('webhooks', 'provision', 'bench', event)) as { secret: string };
  await svc('webhooks', 'pause', 'bench', event);
  return { event, path: `/webhooks/bench/${event}`, secret };
}
