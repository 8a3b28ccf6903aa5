import { expect, test } from 'vitest';
import { revokeSecret, setSecret } from '../../src/contracts/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { state } from '../../src/daemons/state/index.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { startGateway } from '../support/gateway.ts';
import { LIBRARY_PROJECT } from '../support/library.ts';
import { startModelServer } from '../support/openai-server.ts';
import { S3_CREDENTIALS, startS3Server } from '../support/s3-server.ts';
import { send, startRest } from './rest/support.ts';

const stored = (name: string): string => ['$', `{secret:${name}}`].join('');
const CHAT = ['llm', 'complete', 'hello'];

/** The gateway, which stores secrets, and the services that use adapters, with a real plugin. */
async function start(adapters: object) {
  const config = { adapters };
  const peers = createPeers();
  const gateway = await startGateway({ projectDir: LIBRARY_PROJECT, peers, config });
  const keeper = await startTestDaemon(state, { config, peers });
  const rest = await startRest({ projectDir: LIBRARY_PROJECT, peers, config });
  peers.set({ gateway: gateway.url, state: keeper.url, rest: rest.url });
  const call = async (...step: unknown[]) =>
    (
      (await send(rest, 'POST', '/api/v1/plugins/library/call', { body: { steps: [step] } }))
        .body as unknown[]
    )[0];
  const set = (name: string, value: string) =>
    gateway.call(setSecret, { params: { name }, body: { value } as never });
  const revoke = (name: string) => gateway.call(revokeSecret, { params: { name } });
  const warnings = gateway.logs.lines.filter(({ event }) => event === 'adapters.secret_missing');
  const logs = () => JSON.stringify([gateway, rest, keeper].map((daemon) => daemon.logs.lines));
  return { call, set, revoke, warnings, logs };
}

test('an API key that is a stored secret is used, replaced and revoked without a restart', async () => {
  const server = await startModelServer();
  const { call, set, revoke, warnings, logs } = await start({
    llm: { baseUrl: server.baseUrl, apiKey: stored('MODEL_KEY'), models: { default: 'm' }, maxAttempts: 1 },
  });
  const missing = {
    code: 'ADAPTER_NOT_CONFIGURED',
    message: expect.stringContaining('svc secrets set MODEL_KEY --tenant default'),
  };
  expect(warnings).toEqual([
    expect.objectContaining({
      reasonCode: 'ADAPTER_NOT_CONFIGURED',
      message: expect.stringContaining('svc secrets set MODEL_KEY'),
    }),
  ]);
  expect(await call(...CHAT)).toMatchObject(missing);
  const keys = ['model-key-of-monday', 'model-key-of-tuesday'];
  for (const key of keys) {
    await set('MODEL_KEY', key);
    expect(await call(...CHAT)).toMatchObject({ finishReason: 'stop' });
    expect(server.requests.at(-1)!.authorization).toBe(`Bearer ${key}`);
  }
  // The key belongs to the platform: no plugin sees it in a text of the endpoint.
  server.next({ status: 400, json: { error: { message: `bad key ${keys[1]}` } } });
  expect(await call(...CHAT)).toMatchObject({ message: expect.stringContaining('bad key [redacted]') });
  await revoke('MODEL_KEY');
  expect(await call(...CHAT)).toMatchObject(missing);
  expect(server.requests).toHaveLength(3);
  for (const key of keys) expect(logs()).not.toContain(key);
});

test('credentials of a bucket that are stored secrets are read for each request', async () => {
  const s3 = await startS3Server();
  const { call, set, revoke, warnings } = await start({
    storage: {
      type: 's3',
      bucket: s3.bucket,
      endpoint: s3.endpoint,
      pathStyle: true,
      accessKeyId: stored('BUCKET_ID'),
      secretAccessKey: stored('BUCKET_KEY'),
    },
  });
  expect(warnings.map(({ evidence }) => (evidence as { key: string }).key)).toEqual([
    'adapters.storage.accessKeyId',
    'adapters.storage.secretAccessKey',
  ]);
  expect(await call('storage', 'write', 'a', 'text')).toMatchObject({ code: 'ADAPTER_NOT_CONFIGURED' });
  await set('BUCKET_ID', S3_CREDENTIALS.accessKeyId);
  await set('BUCKET_KEY', 'a-wrong-secret-access-key');
  expect(await call('storage', 'write', 'a', 'text')).toMatchObject({ code: expect.any(String) });
  await set('BUCKET_KEY', S3_CREDENTIALS.secretAccessKey);
  expect(await call('storage', 'write', 'a', 'text')).toBeNull();
  expect(await call('storage', 'read', 'a')).toEqual({ bytes: [...Buffer.from('text')] });
  await revoke('BUCKET_KEY');
  expect(await call('storage', 'read', 'a')).toMatchObject({
    code: 'ADAPTER_NOT_CONFIGURED',
    message: expect.stringContaining('BUCKET_KEY'),
  });
});
