import { expect, test } from 'vitest';
import { AdaptersConfig, type S3StorageConfig } from '../../src/contracts/index.ts';
import { s3Objects } from '../../src/store/s3/objects.ts';
import { S3_CREDENTIALS, type S3Server, startS3Server } from '../support/s3-server.ts';
import { describeObjects } from './suites/objects.ts';

const variable = (name: string): string => ['$', `{${name}}`].join('');
const ENV = { KEY_ID: S3_CREDENTIALS.accessKeyId, KEY: S3_CREDENTIALS.secretAccessKey };
const SCOPE = { tenant: 'acme', namespace: 'plugin:@acme/x' };

function configOf(
  { endpoint, bucket }: Pick<S3Server, 'endpoint' | 'bucket'>,
  more: object = {},
): S3StorageConfig {
  const storage = {
    type: 's3',
    bucket,
    endpoint,
    pathStyle: true,
    accessKeyId: variable('KEY_ID'),
    secretAccessKey: variable('KEY'),
    ...more,
  };
  return AdaptersConfig.parse({ storage }).storage as S3StorageConfig;
}

// One bucket a folder, as the folder is what a restart keeps.
const servers = new Map<string, S3Server>();
describeObjects('S3', async ({ dataDir }) => {
  const server = servers.get(dataDir) ?? (await startS3Server());
  servers.set(dataDir, server);
  const port = await s3Objects(configOf(server, { prefix: 'svc' }), ENV);
  return { port, close: () => port.close() };
});

test('objects are stored under prefix, tenant and plugin with any names', async () => {
  const server = await startS3Server();
  const objects = await s3Objects(configOf(server, { prefix: 'mine' }), ENV);
  await objects.write(SCOPE, 'a/b', Buffer.from('x'));
  expect([...server.objects.keys()]).toEqual(['mine/acme/plugin%3A%40acme%2Fx/a/b']);
  await objects.close();
});

test('temporary errors are retried', async () => {
  const server = await startS3Server();
  const objects = await s3Objects(configOf(server), ENV);
  server.fail(500, 503);
  await objects.write(SCOPE, 'a', Buffer.from('x'));
  expect(server.objects.size).toBe(1);
  await objects.close();
});

test('errors of the bucket are explained without secrets', async () => {
  const server = await startS3Server();
  const failure = async (more: object, env: Record<string, string> = ENV) => {
    const objects = await s3Objects(configOf(server, more), env);
    const error = await objects.write(SCOPE, 'a', Buffer.from('x')).catch((thrown: unknown) => thrown);
    await objects.close();
    return error as { code: string; message: string };
  };
  const wrongKey = await failure({}, { ...ENV, KEY: 'wrong-secret-of-the-bucket' });
  expect(wrongKey).toMatchObject({
    code: 'UPSTREAM_UNAVAILABLE',
    message: expect.stringContaining('Check adapters.storage.secretAccessKey'),
  });
  expect(await failure({}, { ...ENV, KEY_ID: 'AKIAOTHER' })).toMatchObject({
    message: expect.stringContaining('accessKeyId'),
  });
  expect(await failure({ bucket: 'absent' })).toMatchObject({
    message: expect.stringContaining('it does not exist'),
  });
  server.fail(403);
  expect(await failure({})).toMatchObject({ message: expect.stringContaining('access was denied') });
  const down = await failure({ endpoint: 'http://127.0.0.1:1' });
  expect(down).toMatchObject({
    code: 'UPSTREAM_UNAVAILABLE',
    message: expect.stringContaining('ECONNREFUSED'),
  });
  for (const { message } of [wrongKey, down]) expect(message).not.toContain('secret-of');
});

test('an object that is too large is not read', async () => {
  const server = await startS3Server();
  const objects = await s3Objects(configOf(server, { maxObjectBytes: 10 }), ENV);
  server.objects.set('acme/plugin%3A%40acme%2Fx/big', { data: Buffer.alloc(11), modifiedAt: new Date() });
  await expect(objects.read(SCOPE, 'big')).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
  await objects.close();
});

test('a missing environment variable is named in the error', async () => {
  const server = await startS3Server();
  await expect(s3Objects(configOf(server), { KEY_ID: 'x' })).rejects.toMatchObject({
    code: 'ADAPTER_NOT_CONFIGURED',
    details: { key: 'adapters.storage.secretAccessKey', variable: 'KEY' },
  });
});
