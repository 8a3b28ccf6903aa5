import { expect, test } from 'vitest';
import { startGateway } from '../../support/gateway.ts';
import { openApiFaults } from '../../support/openapi.ts';

test('the description of the gateway lists every webhook endpoint but the stream, and is valid', async () => {
  const gateway = await startGateway();
  const document = (await (await gateway.fetch('/openapi.json')).json()) as { paths: Record<string, object> };
  expect(await openApiFaults(document)).toEqual([]);
  const paths = Object.entries(document.paths)
    .filter(([path]) => path.startsWith('/api/v1/webhooks'))
    .flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path.slice('/api/v1/webhooks'.length)}`),
    );
  expect(paths.toSorted()).toEqual([
    'delete /{pluginId}/{event}',
    'delete /{pluginId}/{event}/{instanceId}',
    'get ',
    'get /deliveries',
    'get /deliveries/counts',
    'get /deliveries/{webhookId}',
    'get /providers',
    'get /providers/{id}',
    'get /rotation',
    'post /deliveries/replay',
    'post /deliveries/{webhookId}/replay',
    'post /deliveries/{webhookId}/trust',
    'post /expect-secret',
    'post /pause',
    'post /provision',
    'post /resume',
    'post /send',
  ]);
});

test('deliveries are described with their header and answers, and without a Bearer token', async () => {
  const gateway = await startGateway();
  const { paths } = (await (await gateway.fetch('/openapi-merged.json')).json()) as {
    paths: Record<string, { post: Record<string, unknown> }>;
  };
  for (const path of ['/webhooks/{pluginId}/{event}', '/webhooks/{pluginId}/{event}/{instanceId}']) {
    const { security, parameters, responses } = paths[path]!.post;
    expect(security).toEqual([]);
    expect(parameters).toContainEqual(
      expect.objectContaining({ name: 'x-svc-namespace', in: 'header', required: true }),
    );
    expect(Object.keys(responses as object)).toEqual(
      expect.arrayContaining(['200', '202', '400', '401', '404', '413', '415', '429', '503', '504']),
    );
  }
});
