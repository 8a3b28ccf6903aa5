import { createHmac } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestPlatform } from './platform.ts';

const SENDERS = 4;

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: 'inbox',
  version: '1.0.0',
  permissions: { platform: { state: true } },
  webhooks: ['sync', 'async'].map((event) => ({
    event,
    handler: 'hooks.js#handle',
    async: event === 'async',
    auth: { type: 'hmac', header: 'x-signature' },
    idempotencyKey: 'id',
    rateLimit: { requestsPerMinute: 1_000_000 },
  })),
};
const HANDLER = `export async function handle(ctx, { id }) { await ctx.state.set('seen:' + id, true); return null; }`;

/** Adds a plugin with a sync and an async webhook. */
export async function addInbox({ folder }: TestPlatform): Promise<void> {
  const root = join(folder, 'plugins', 'inbox');
  await mkdir(root, { recursive: true });
  await writeFile(join(root, 'svc.plugin.json'), JSON.stringify(MANIFEST));
  await writeFile(join(root, 'package.json'), '{"type":"module"}');
  await writeFile(join(root, 'hooks.js'), HANDLER);
}

export interface Hook {
  url: string;
  secret: string;
}

export async function deliver(gateway: string, event: string, { secret }: Hook, id: string) {
  const body = JSON.stringify({ id });
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  const response = await fetch(`${gateway}/webhooks/inbox/${event}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-svc-namespace': 'default', 'x-signature': signature },
    body,
  });
  return { status: response.status, body: (await response.json()) as { status?: string } };
}

/** Delivers without pause until stopped; `acknowledged` grows with every 2xx. */
export function senders(gateway: string, hooks: Record<string, Hook>) {
  const acknowledged: Array<{ event: string; id: string }> = [];
  let stopped = false;
  const run = async (sender: number): Promise<void> => {
    for (let n = 0; !stopped; n++) {
      const event = n % 2 === 0 ? 'sync' : 'async';
      const id = `${sender}-${n}`;
      const { status } = await deliver(gateway, event, hooks[event]!, id);
      if (status === 200 || status === 202) acknowledged.push({ event, id });
    }
  };
  const done = Promise.all(Array.from({ length: SENDERS }, (_, sender) => run(sender)));
  return {
    acknowledged,
    async stop() {
      stopped = true;
      await done;
    },
  };
}
