import { expect, test } from 'vitest';
import { startGateway } from '../../support/gateway.ts';
import { openApiFaults } from '../../support/openapi.ts';

test('the description of the gateway names every webhook endpoint but the stream, and is valid', async () => {
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
    'get /deliveries/{webhookId}',
    'post /deliveries/replay',
    'post /deliveries/{webhookId}/replay',
    'post /pause',
    'post /provision',
    'post /resume',
    'post /send',
  ]);
});
