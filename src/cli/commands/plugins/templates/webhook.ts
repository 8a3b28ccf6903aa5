import { shortName, type Template, text } from './template.ts';

/** Template of a plugin with a signed webhook that stores its payload. */
export const webhookTemplate: Template = (id) => ({
  readme: `Receives orders: \`svc webhooks provision ${id} order.created\` shows its URL and secret.`,
  manifest: {
    permissions: { platform: { state: true, cache: false } },
    webhooks: [
      {
        event: 'order.created',
        handler: 'webhooks.js#onOrder',
        description: 'An order was created',
        auth: { type: 'hmac', header: 'x-signature', algorithm: 'sha256', prefix: 'sha256=' },
        idempotencyKey: 'id',
      },
    ],
    commands: [
      { id: `${shortName(id)}-total`, handler: 'commands.js#total', description: 'Total of all orders' },
    ],
  },
  files: {
    'webhooks.js': text(`
      import { defineWebhook, ok, z } from 'svc-platform/sdk';

      export const onOrder = defineWebhook({
        input: z.object({ id: z.string(), total: z.number().positive() }),
        async execute(ctx, order) {
          const count = await ctx.state.increment('orders');
          await ctx.state.set(\`order:\${order.id}\`, order);
          ctx.log.info('order', { id: order.id, count, webhookId: ctx.hostContext.webhookId });
          return ok({ count });
        },
      });
    `),
    'commands.js': text(`
      import { defineCommand, ok } from 'svc-platform/sdk';

      export const total = defineCommand(async (ctx) => {
        const { items } = await ctx.state.list({ prefix: 'order:' });
        const sum = items.reduce((total, { value }) => total + value.total, 0);
        return ok({ count: items.length, total: sum });
      });
    `),
    'test/webhooks.test.js': text(`
      import assert from 'node:assert/strict';
      import { after, test } from 'node:test';
      import { createTestHost } from 'svc-platform/testing';

      const host = await createTestHost();
      after(() => host.close());

      test('orders are counted and stored', async () => {
        assert.deepEqual((await host.webhook('order.created', { id: 'a', total: 5 })).result, { count: 1 });
        assert.deepEqual((await host.webhook('order.created', { id: 'b', total: 7 })).result, { count: 2 });
        assert.deepEqual((await host.command(host.manifest.commands[0].id)).result, { count: 2, total: 12 });
      });

      test('each namespace has its own orders', async () => {
        const { result } = await host.webhook('order.created', { id: 'a', total: 1 }, { namespaceId: 'acme' });
        assert.deepEqual(result, { count: 1 });
      });

      test('an invalid order is rejected', async () => {
        await assert.rejects(host.webhook('order.created', { id: 'c' }), { code: 'VALIDATION_ERROR' });
      });
    `),
  },
});
