import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { startTestAgent } from '../../agent/support.ts';
import { deliver, provision, startGateway } from '../../support/gateway.ts';

const PROJECT = fileURLToPath(new URL('../../fixtures/projects/webhooks', import.meta.url));

const start = () =>
  startGateway({
    projectDir: PROJECT,
    config: { execution: { plugins: { '@acme/orders': { backend: 'host' } } } },
  });

test('a custom validator without a connected host: 503, and the handler does not run', async () => {
  const gateway = await start();
  const secret = await provision(gateway, 'checked');
  const { status, body, headers } = await deliver(gateway, { event: 'checked', secret, payload: {} });
  expect([status, body.error.code, headers.get('retry-after')]).toEqual([503, 'HOST_UNAVAILABLE', '5']);
});

test('a handler without a connected host: 503 with Retry-After', async () => {
  const gateway = await start();
  const secret = await provision(gateway, 'plain');
  const { status, body, headers } = await deliver(gateway, { event: 'plain', secret, payload: {} });
  expect([status, body.error.code, headers.get('retry-after')]).toEqual([503, 'HOST_UNAVAILABLE', '5']);
});

test('with a host, validator and handler run there; a wrong secret is 401', async () => {
  const gateway = await start();
  const secret = await provision(gateway, 'checked');
  await startTestAgent(gateway);
  expect((await deliver(gateway, { event: 'checked', secret, payload: {} })).status).toBe(200);
  expect((await deliver(gateway, { event: 'checked', secret: 'wrong', payload: {} })).status).toBe(401);
});
