import { expect, test } from 'vitest';
import { openApiFaults } from '../../support/openapi.ts';
import { send, startRest } from './support.ts';

interface Document {
  paths: Record<string, Record<string, unknown>>;
  components: { schemas: Record<string, unknown> };
}
const read = async (daemon: Awaited<ReturnType<typeof startRest>>, path: string): Promise<Document> =>
  (await daemon.fetch(path)).json() as Promise<Document>;

test('the REST API answers health only under its prefix', async () => {
  const daemon = await startRest();
  expect((await send(daemon, 'GET', '/api/v1/health')).body).toMatchObject({ status: 'ok', service: 'rest' });
  expect((await send(daemon, 'GET', '/health')).status).toBe(404);
  for (const path of ['/metrics', '/api/v1/metrics']) {
    const response = await daemon.fetch(path);
    expect([response.status, await response.text()]).toEqual([
      200,
      expect.stringContaining('svc_service_uptime_seconds{service="rest"}'),
    ]);
  }
  expect((await daemon.fetch('/docs')).status).toBe(200);
});

test('its description is valid, and has the rows of the spec', async () => {
  const daemon = await startRest();
  const document = await read(daemon, '/openapi.json');
  expect(await openApiFaults(document)).toEqual([]);
  expect(
    Object.entries(document.paths)
      .flatMap(([path, item]) => Object.keys(item).map((method) => `${method} ${path}`))
      .sort(),
  ).toEqual(
    expect.arrayContaining([
      'delete /api/v1/marketplace/plugins/{pluginId}',
      'delete /api/v1/workflows/runs/{runId}',
      'get /api/v1/analytics/daily',
      'get /api/v1/analytics/events',
      'get /api/v1/analytics/stats',
      'get /api/v1/commands',
      'get /api/v1/commands/{pluginId}/{commandId}',
      'get /api/v1/health',
      'get /api/v1/jobs/{jobId}',
      'get /api/v1/logs',
      'get /api/v1/marketplace/plugins',
      'get /api/v1/marketplace/plugins/{pluginId}',
      'get /api/v1/routes',
      'get /api/v1/workflows/runs',
      'get /api/v1/workflows/runs/{runId}',
      'get /api/v1/workflows/runs/{runId}/logs',
      'post /api/v1/commands/{pluginId}/{commandId}',
      'post /api/v1/jobs',
      'post /api/v1/marketplace/plugins',
      'post /api/v1/workflows/runs',
    ]),
  );
  expect(Object.keys(document.components.schemas)).toEqual(
    expect.arrayContaining([
      'AnalyticsEvent',
      'Error',
      'Health',
      'Job',
      'LogRecord',
      'PluginDetail',
      'PluginRecord',
      'WorkflowRun',
    ]),
  );
});

test('plugin routes are described from their manifests and schema files', async () => {
  const daemon = await startRest();
  const document = await read(daemon, '/openapi-plugins.json');
  expect(await openApiFaults(document)).toEqual([]);
  const orders = document.paths['/api/v1/plugins/shop/orders']!;
  expect(orders.get).toMatchObject({
    summary: 'List orders',
    tags: ['plugin:@acme/shop'],
    parameters: [
      {
        name: 'limit',
        in: 'query',
        required: false,
        description: 'How many',
        schema: { type: 'integer', maximum: 100 },
      },
      { name: 'tag', in: 'query' },
    ],
  });
  expect(orders.post).toMatchObject({
    requestBody: {
      content: { 'application/json': { schema: { $ref: '#/components/schemas/acme.shop.Order' } } },
    },
    responses: {
      200: { content: { 'application/json': { schema: { $ref: '#/components/schemas/acme.shop.Echo' } } } },
      400: { description: 'VALIDATION_ERROR' },
    },
  });
  expect(document.components.schemas['acme.shop.Order']).toMatchObject({
    properties: { bundle: { items: { $ref: '#/components/schemas/acme.shop.Order' } } },
  });
  const answers = document.paths['/api/v1/plugins/shop/answers/{kind}']!.post as {
    responses: object;
    parameters: object;
  };
  expect(answers.responses).toMatchObject({
    422: { description: 'OUT_OF_STOCK: Nothing left' },
    503: { description: 'BUSY' },
  });
  expect(answers.parameters).toEqual([
    { name: 'kind', in: 'path', required: true, schema: { type: 'string' } },
  ]);
  expect(document.paths['/api/v1/plugins/shop/zod']!.get).toMatchObject({
    parameters: [{ name: 'limit', in: 'query', required: true, schema: { type: 'integer', maximum: 100 } }],
  });
  expect(document.paths['/api/v1/plugins/shop/typed/{id}']!.put).toMatchObject({
    requestBody: {
      content: { 'application/json': { schema: { properties: { note: { type: 'string' } } } } },
    },
    responses: { 200: { content: { 'application/json': { schema: { required: ['noted'] } } } } },
  });
  expect(document.paths['/api/v1/plugins/shop/open']!.get).toMatchObject({ security: [] });
  expect(document.paths['/api/v1/plugins/squatter/stolen']!.get).toMatchObject({
    security: [{ bearer: [] }],
  });
});

test('/api/v1/routes lists every route, described or not', async () => {
  const daemon = await startRest();
  const { items } = (await send(daemon, 'GET', '/api/v1/routes')).body as {
    items: Array<Record<string, unknown>>;
  };
  const find = (method: string, path: string) =>
    items.filter((item) => item.method === method && item.path === path);
  expect(find('GET', '/api/v1/workflows/runs')).toEqual([
    { method: 'GET', path: '/api/v1/workflows/runs', tagged: true, visible: true, pluginId: null },
  ]);
  expect(find('GET', '/openapi.json')).toEqual([expect.objectContaining({ tagged: false, visible: false })]);
  expect(find('GET', '/api/v1/metrics')).toHaveLength(1);
  expect(find('GET', '/docs/assets/:asset')).toHaveLength(1);
  expect(find('DELETE', '/api/v1/plugins/shop/orders/:id')).toEqual([
    expect.objectContaining({ pluginId: '@acme/shop', visible: true }),
  ]);
  expect(find('DELETE', '/api/v1/plugins/%40acme%2Fshop/orders/:id')).toEqual([
    expect.objectContaining({ visible: false }),
  ]);
  const keys = items.map(({ method, path }) => `${path} ${method}`);
  expect(new Set(keys).size).toBe(keys.length);
  expect(keys).toEqual([...keys].sort());
});
