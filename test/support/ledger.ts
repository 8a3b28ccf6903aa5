import { createHmac } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tempDir } from './daemon.ts';

/** Plugin whose handlers write one line per run: the delivery's own id, its webhook id, and the process that ran it. */
export const LEDGER_PLUGIN = '@acme/ledger';

const webhook = (event: string, more: object = {}) => ({
  event,
  handler: 'hooks.js#enter',
  auth: { type: 'hmac', header: 'x-signature' },
  idempotencyKey: 'id',
  rateLimit: { requestsPerMinute: 1_000_000_000 },
  ...more,
});

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: LEDGER_PLUGIN,
  version: '1.0.0',
  permissions: {
    fs: { write: ['./runs.log'], read: ['./runs.log'] },
    env: ['GENERATION'],
    quotas: { concurrency: 20 },
  },
  webhooks: [
    webhook('sync'),
    webhook('async', { async: true }),
    webhook('limited', { idempotencyKey: undefined, rateLimit: { requestsPerMinute: 50 } }),
  ],
};

/** A line is appended by one write, so lines of several processes do not mix. */
const HANDLER = `import { appendFileSync } from 'node:fs';
const file = new URL('./runs.log', import.meta.url);
export async function enter(ctx, { id, sleepMs }) {
  const { webhookId } = ctx.hostContext;
  appendFileSync(file, [id, webhookId, ctx.env.GENERATION].join(' ') + '\\n');
  if (sleepMs) await new Promise((resolve) => setTimeout(resolve, sleepMs));
  return null;
}
`;

export interface LedgerRun {
  id: string;
  webhookId: string;
  /** The gateway process that ran the handler. */
  generation: string;
}

export interface LedgerProject {
  folder: string;
  runs(): Promise<LedgerRun[]>;
}

/** A project folder with the ledger plugin, for gateways that share it. */
export async function createLedgerProject(): Promise<LedgerProject> {
  const folder = await tempDir();
  const plugin = join(folder, 'plugins/ledger');
  const file = join(plugin, 'runs.log');
  await mkdir(plugin, { recursive: true });
  await writeFile(join(plugin, 'svc.plugin.json'), JSON.stringify(MANIFEST));
  await writeFile(join(plugin, 'package.json'), '{"type":"module"}');
  await writeFile(join(plugin, 'hooks.js'), HANDLER);
  await writeFile(file, '');
  return {
    folder,
    async runs() {
      const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '');
      return lines.map((line) => {
        const [id = '', webhookId = '', generation = ''] = line.split(' ');
        return { id, webhookId, generation };
      });
    },
  };
}

/** Sends one delivery to the ledger plugin. Rejects if the connection fails. */
export async function sendToLedger(
  url: string,
  { event, secret, payload }: { event: string; secret: string; payload: { id: string; sleepMs?: number } },
): Promise<{ status: number; headers: Headers; body: { status?: string; webhookId?: string } }> {
  const body = JSON.stringify(payload);
  const response = await fetch(`${url}/webhooks/${encodeURIComponent(LEDGER_PLUGIN)}/${event}`, {
    method: 'POST',
    body,
    headers: {
      'content-type': 'application/json',
      'x-svc-namespace': 'default',
      'x-signature': createHmac('sha256', secret).update(body).digest('hex'),
    },
    signal: AbortSignal.timeout(60_000),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  return {
    status: response.status,
    headers: response.headers,
    body: isJson && text !== '' ? (JSON.parse(text) ?? {}) : {},
  };
}
