import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { cel } from '../daemons/workflow/support/workflow.ts';

const ID = '@acme/shop';

const manifestOf = (api: string) => ({
  schema: 'svc.plugin/3',
  id: ID,
  version: '1.0.0',
  permissions: { network: [api], platform: { cache: true, jobs: true } },
  webhooks: [
    {
      event: 'paid',
      handler: 'shop.js#onPaid',
      auth: { type: 'hmac', header: 'x-signature', algorithm: 'sha256', prefix: 'sha256=' },
    },
  ],
  commands: [{ id: 'shop-ship', handler: 'shop.js#ship', description: 'Ships an order' }],
  jobs: [{ id: 'receipt', handler: 'shop.js#receipt' }],
});

const codeOf = (api: string) => `
import { defineCommand, defineJob, defineWebhook, ok } from 'svc-platform/sdk';

export const onPaid = defineWebhook({
  async execute(ctx, order) {
    ctx.log.info('paid', { order: order.id });
    await ctx.cache.get('nothing');
    const reply = await ctx.fetch('http://${api}/stock?key=hidden');
    const job = await ctx.jobs.submit('receipt', { order: order.id });
    return { stock: reply.status, job: job.id };
  },
});
export const ship = defineCommand(async (ctx, { order }) => {
  if (order === 'lost') throw new Error('the order is lost');
  return ok({ shipped: order });
});
export const receipt = defineJob({ execute: async () => ({ printed: true }) });
`;

const WORKFLOW = {
  id: 'fulfil',
  inputs: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
  on: { webhook: [{ pluginId: ID, event: 'paid', input: { order: cel('delivery.payload.id') } }] },
  jobs: {
    main: {
      steps: [
        { id: 'note', uses: 'set', with: { order: cel('input.order') } },
        { id: 'ship', uses: `${ID}/shop-ship`, with: { order: cel('input.order') } },
      ],
    },
  },
};

/** Starts an HTTP server that `ctx.fetch` of the plugin calls. */
export async function startStockApi(): Promise<{ host: string; close(): void }> {
  const server = createServer((_request, response) => response.end('{"left":1}'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { host: `127.0.0.1:${port}`, close: () => server.close() };
}

/**
 * Writes a plugin whose webhook handler reads the cache, calls an API and submits a job, and a workflow that its
 * deliveries start.
 */
export async function writeTracedProject(folder: string, api: string): Promise<void> {
  const plugin = join(folder, 'plugins/shop');
  await mkdir(plugin, { recursive: true });
  await mkdir(join(folder, 'workflows'), { recursive: true });
  await writeFile(
    join(plugin, 'package.json'),
    JSON.stringify({ name: ID, version: '1.0.0', type: 'module' }),
  );
  await writeFile(join(plugin, 'svc.plugin.json'), JSON.stringify(manifestOf(api)));
  await writeFile(join(plugin, 'shop.js'), codeOf(api));
  await writeFile(join(folder, 'workflows/fulfil.yaml'), JSON.stringify(WORKFLOW));
}

/** Configuration of the project. The plugin may call the API on loopback. */
export const tracedConfig = (api: string) => ({
  plugins: ['./plugins/*'],
  execution: { privateHosts: [api] },
});
