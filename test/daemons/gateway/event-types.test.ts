import { expect, test } from 'vitest';
import { listEventTypes } from '../../../src/contracts/index.ts';
import { EventTypes } from '../../../src/daemons/gateway/domain/event-types/event-types.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { seconds } from '../../../src/kit/time/duration.ts';
import { tempDir } from '../../support/daemon.ts';
import { OTHER_TOKEN, startGateway } from '../../support/gateway.ts';
import { openApiFaults } from '../../support/openapi.ts';
import { writeFiles } from '../marketplace/support.ts';

const ORDER = {
  type: 'object',
  required: ['id', 'total'],
  properties: { id: { type: 'string' }, total: { type: 'number', minimum: 0 } },
  additionalProperties: false,
};

function plugin(id: string, events: Record<string, unknown>, files: Record<string, unknown> = {}) {
  return {
    [`${id}/package.json`]: { name: id, type: 'module' },
    [`${id}/svc.plugin.json`]: { schema: 'svc.plugin/3', id, version: '1.0.0', events },
    ...Object.fromEntries(Object.entries(files).map(([name, text]) => [`${id}/${name}`, text])),
  };
}

async function gatewayWith(files: Record<string, unknown>) {
  const projectDir = await writeFiles(await tempDir(), files as Parameters<typeof writeFiles>[1]);
  return startGateway({ projectDir, config: { plugins: ['./*'] } });
}

const SHOP = plugin(
  'shop',
  {
    'order.paid': { schema: ORDER, description: 'An order was paid.' },
    'order.mailed': { schema: { zod: './schemas.js#Mailed' } },
    'order.listed': { schema: { $ref: 'order.json#/$defs/List' } },
    'order.touched': {},
  },
  {
    'schemas.js': `import { z } from 'svc-platform/sdk';
      export const Mailed = z.object({ to: z.email(), items: z.array(z.string().regex(/^[a-z]+$/)).nullable() });`,
    'order.json': {
      $defs: { List: { type: 'array', items: { $ref: '#/$defs/Id' } }, Id: { type: 'string' } },
    },
  },
);

test('the declared event types are listed with their schemas, of every kind of reference', async () => {
  const gateway = await gatewayWith(SHOP);
  for (const token of [undefined, OTHER_TOKEN]) {
    const { items } = await gateway.call(listEventTypes, {}, token);
    expect(items.map(({ type, pluginId }) => [type, pluginId])).toEqual([
      ['order.listed', 'shop'],
      ['order.mailed', 'shop'],
      ['order.paid', 'shop'],
      ['order.touched', 'shop'],
    ]);
    expect(items[0]!.schema).toMatchObject({ $defs: { List: { type: 'array' }, Id: { type: 'string' } } });
    expect(items[1]!.schema).toMatchObject({ type: 'object', required: ['to', 'items'] });
    expect(items[2]).toMatchObject({ schema: ORDER, description: 'An order was paid.' });
    expect(items[3]).toMatchObject({ schema: null, description: null });
  }
});

test('data is checked against the schema, and faults name their paths', async () => {
  const gateway = await gatewayWith(SHOP);
  const { plugins } = gateway.services as { plugins: ConstructorParameters<typeof EventTypes>[0]['plugins'] };
  const types = new EventTypes({ plugins, clock: manualClock() });
  const faults = (type: string, data: Parameters<EventTypes['check']>[1]) =>
    Promise.resolve(types.check(type, data)).then(
      () => [],
      (error) => error.details.issues.map(({ path }: { path: string }) => path).sort(),
    );
  expect(await faults('order.paid', { id: 'o1', total: 3 })).toEqual([]);
  expect(await faults('order.paid', { id: 7, total: -1, extra: true })).toEqual([
    'data.extra',
    'data.id',
    'data.total',
  ]);
  expect(await faults('order.paid', 'text')).toEqual(['data']);
  expect(await faults('order.mailed', { to: 'a@example.com', items: null })).toEqual([]);
  expect(await faults('order.mailed', { to: 'a@example.com', items: ['ok', 'NO'] })).toContain(
    'data.items.1',
  );
  expect(await faults('order.listed', ['a', 7])).toEqual(['data.1']);
  expect(await faults('order.touched', { any: ['thing'] })).toEqual([]);
  expect(await faults('not.declared', { any: ['thing'] })).toEqual([]);
});

test('a schema whose check never ends fails the check, not the gateway', async () => {
  const gateway = await gatewayWith(
    plugin('slow', { slow: { schema: { type: 'string', pattern: '^(a+)+$' } } }),
  );
  const { plugins } = gateway.services as { plugins: ConstructorParameters<typeof EventTypes>[0]['plugins'] };
  const types = new EventTypes({ plugins, clock: manualClock() });
  let code: string | undefined;
  const checked = types.check('slow', `${'a'.repeat(60)}!`)!.catch((error) => {
    code = error.code;
  });
  // The gateway answers while the check runs.
  expect((await gateway.fetch('/health')).status).toBe(200);
  await expect
    .poll(
      () => {
        gateway.clock.advance(seconds(2));
        return code;
      },
      { timeout: 15_000 },
    )
    .toMatch(/^(?:EXECUTION_TIMEOUT|SERVICE_UNAVAILABLE)$/);
  await checked;
}, 30_000);

test('the API descriptions print the events under webhooks, with the headers of Standard Webhooks', async () => {
  const gateway = await gatewayWith(SHOP);
  for (const path of ['/openapi.json', '/openapi-merged.json']) {
    const document = (await (await gateway.fetch(path)).json()) as {
      webhooks: Record<string, { post: { parameters: Array<{ name: string }>; requestBody: object } }>;
      components: { schemas: Record<string, unknown> };
    };
    expect(await openApiFaults(document)).toEqual([]);
    expect(Object.keys(document.webhooks)).toEqual([
      'order.listed',
      'order.mailed',
      'order.paid',
      'order.touched',
    ]);
    const { parameters, requestBody } = document.webhooks['order.paid']!.post;
    expect(parameters.map(({ name }) => name)).toEqual([
      'webhook-id',
      'webhook-timestamp',
      'webhook-signature',
    ]);
    expect(requestBody).toMatchObject({
      content: {
        'application/json': { schema: { properties: { type: { const: 'order.paid' }, data: ORDER } } },
      },
    });
  }
});

test('an API description without events has no webhooks', async () => {
  const gateway = await gatewayWith(plugin('plain', {}));
  expect(await (await gateway.fetch('/openapi.json')).json()).not.toHaveProperty('webhooks');
});

test('two plugins may declare one type alike, but not with different schemas', async () => {
  const gateway = await gatewayWith({
    ...plugin('a', { 'order.paid': { schema: ORDER } }),
    ...plugin('b', { 'order.paid': { schema: ORDER, description: 'The same.' } }),
    ...plugin('c', { 'order.paid': { schema: { type: 'string' } } }),
  });
  const { items } = await gateway.call(listEventTypes);
  expect(items.map(({ type, pluginId }) => [type, pluginId])).toEqual([['order.paid', 'a']]);
  const { plugins } = gateway.services as {
    plugins: { registry: { broken: Array<{ id: string; faults: Array<{ message: string }> }> } };
  };
  expect(plugins.registry.broken).toMatchObject([
    {
      id: 'c',
      faults: [
        {
          code: 'PLUGIN_CONFLICT',
          path: 'events.order.paid',
          message: expect.stringContaining('plugin a already declares the event type "order.paid"'),
        },
      ],
    },
  ]);
});
