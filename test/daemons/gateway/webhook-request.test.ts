import { expect, test } from 'vitest';
import { getDelivery, provisionWebhook, replayDelivery } from '../../../src/contracts/index.ts';
import { deliver, provision, startGateway, type TestGateway } from '../../support/gateway.ts';
import { eventually } from '../../support/webhook-senders.ts';

/** What a delivery brings that a handler may see, and what it must not see. */
const HARMLESS = {
  'x-github-event': 'push',
  'x-gitlab-event': 'Push Hook',
  'x-goog-resource-state': 'exists',
  'idempotency-key': 'i-1',
  'x-forwarded-proto': 'https',
};
const SECRET = {
  authorization: 'Basic dTpw',
  'proxy-authorization': 'Basic dTpw',
  cookie: 'session=1',
  'x-api-key': 'key-1',
  'x-gitlab-token': 'token-1',
  'x-hub-signature-256': 'sha256=00',
};

/** The host contexts that the fixture's handler was given, oldest first. */
const contexts = (gateway: TestGateway) =>
  gateway.logs.lines
    .filter((line) => line.message === 'handled')
    .map((line) => (line.meta as { context: Record<string, unknown> }).context);

test('a sync handler gets headers, method, path and query, but no credentials', async () => {
  const gateway = await startGateway();
  const { secret } = await gateway.call(provisionWebhook, {
    body: { pluginId: '@acme/orders', event: 'plain', namespaceInUrl: true } as never,
  });
  const { body } = await deliver(gateway, {
    ...{ event: 'plain', secret, namespace: null },
    query: '?namespace=default&tag=a&tag=b&q=%C3%BC',
    headers: { ...HARMLESS, ...SECRET },
  });
  const { context } = body.result;
  expect(context).toMatchObject({
    method: 'POST',
    path: '/webhooks/%40acme%2Forders/plain',
    query: { namespace: 'default', tag: ['a', 'b'], q: 'ü' },
    headers: { ...HARMLESS, host: `127.0.0.1:${gateway.port}` },
  });
  for (const name of [...Object.keys(SECRET), 'x-token']) expect(context.headers).not.toHaveProperty(name);
  expect(JSON.stringify(context)).not.toContain(secret);
});

test('an async handler gets them too, after a restart and in a replay', async () => {
  const first = await startGateway({ config: { execution: { worker: { maxProcesses: 1 } } } });
  const secret = await provision(first, 'later');
  const send = (id: string, payload: object) =>
    deliver(first, {
      ...{ event: 'later', secret, payload, query: '?page=2' },
      headers: { ...HARMLESS, ...SECRET, 'x-delivery': id },
    });
  const told = {
    method: 'POST',
    path: '/webhooks/%40acme%2Forders/later',
    query: { page: '2' },
    headers: { ...HARMLESS, 'x-delivery': 'd-1' },
  };
  const { body } = await send('d-1', { logContext: true });
  await eventually(() => expect(contexts(first)).toHaveLength(1));
  expect(contexts(first)[0]).toMatchObject(told);
  await eventually(async () => {
    const { status } = await first.call(getDelivery, { params: { webhookId: body.webhookId } });
    expect(status).toBe('succeeded');
  });
  await first.close();

  const second = await startGateway({ dataDir: first.dataDir, clock: first.clock });
  await second.call(replayDelivery, { params: { webhookId: body.webhookId } });
  await eventually(() => expect(contexts(second)).toHaveLength(1));
  expect(contexts(second)[0]).toMatchObject(told);
  for (const name of [...Object.keys(SECRET), 'x-signature'])
    expect(contexts(second)[0]!.headers).not.toHaveProperty(name);
});

test('a validator gets every header unchanged, and its handler none that contains the secret, whatever its name', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'checked');
  const { status, body } = await deliver(gateway, {
    ...{ event: 'checked', secret, payload: { logContext: true }, query: '?v=1' },
    headers: { ...HARMLESS, ...SECRET, 'x-custom-b': `k=${secret}` },
  });
  expect(status).toBe(200);
  const told = gateway.logs.lines.find((line) => line.message === 'validating');
  expect((told!.meta as { names: string[] }).names).toEqual(
    expect.arrayContaining([...Object.keys(HARMLESS), ...Object.keys(SECRET), 'x-custom', 'x-custom-b']),
  );
  expect(told!.meta).toMatchObject({
    same: true,
    ...{ method: 'POST', path: '/webhooks/%40acme%2Forders/checked', query: { v: '1' }, source: '127.0.0.1' },
  });
  expect(body.result.context.headers).toMatchObject(HARMLESS);
  for (const name of ['x-custom', 'x-custom-b']) expect(body.result.context.headers).not.toHaveProperty(name);
});

test('the record of a refused request keeps only short values of harmless headers', async () => {
  const gateway = await startGateway();
  await provision(gateway, 'plain');
  const { headers } = await deliver(gateway, {
    ...{ event: 'plain', secret: 'wrong' },
    headers: { ...HARMLESS, 'user-agent': 'u'.repeat(15_000) },
  });
  const record = await gateway.call(getDelivery, {
    params: { webhookId: headers.get('x-webhook-id')! as never },
  });
  const kept = Object.fromEntries(record.headers);
  expect(kept['user-agent']).toBe('u'.repeat(256));
  expect(kept['x-gitlab-event']).toBe('[masked]');
});
