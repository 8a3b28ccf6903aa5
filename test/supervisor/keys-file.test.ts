import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemRandom } from '../../src/kit/security/random.ts';
import { dataFolder, ensureDataFolder } from '../../src/supervisor/data-folder.ts';
import { loadSecrets, readCredentials } from '../../src/supervisor/keys-file.ts';
import { tempDir } from '../support/daemon.ts';

const random = systemRandom();

async function folder() {
  const data = dataFolder(join(await tempDir(), '.svc'));
  ensureDataFolder(data);
  return data;
}

test('the first start creates 32-byte keys and operator credentials that only their owner can read', async () => {
  const data = await folder();
  const { keys, operator, created } = loadSecrets(data, {}, random);
  expect(created).toBe(true);
  const secrets = [keys.jwtSecret!, keys.internalSecret, keys.masterKey, operator.clientSecret];
  expect(new Set(secrets).size).toBe(4);
  for (const secret of secrets) expect(Buffer.from(secret, 'base64url')).toHaveLength(32);
  expect(operator).toMatchObject({ hostId: 'operator', namespaceId: 'default' });
  for (const file of [data.keys, data.credentials]) expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(loadSecrets(data, {}, random)).toEqual({ keys, operator, created: false });
  expect(readCredentials(data, {})).toEqual(operator);
});

test('environment variables take precedence over keys.json, which stays unchanged', async () => {
  const data = await folder();
  loadSecrets(data, {}, random);
  const before = await readFile(data.keys, 'utf8');
  const env = {
    GATEWAY_JWT_SECRET: 'a',
    GATEWAY_JWT_SECRET_PREVIOUS: 'b',
    GATEWAY_INTERNAL_SECRET: 'c',
    SVC_MASTER_KEY: random.secret(32),
  };
  expect(loadSecrets(data, env, random).keys).toEqual({
    jwtSecret: 'a',
    isJwtSecretGenerated: false,
    previousJwtSecret: 'b',
    internalSecret: 'c',
    masterKey: env.SVC_MASTER_KEY,
  });
  expect(await readFile(data.keys, 'utf8')).toBe(before);
});

test('an invalid master key is rejected before it encrypts any value', async () => {
  const data = await folder();
  expect(() => loadSecrets(data, { SVC_MASTER_KEY: 'short' }, random)).toThrow(/32 bytes in base64url/);
});

test('key files that other users can read are made private', async () => {
  const data = await folder();
  loadSecrets(data, {}, random);
  await chmod(data.keys, 0o644);
  loadSecrets(data, {}, random);
  expect((await stat(data.keys)).mode & 0o777).toBe(0o600);
});

test.each(['', '{"jwtSecret": "x"', '{"jwtSecret": "x"}'])(
  'a damaged keys file is refused and kept: %j',
  async (text) => {
    const data = await folder();
    await writeFile(data.keys, text);
    expect(() => loadSecrets(data, {}, random)).toThrow(data.keys);
    expect(await readFile(data.keys, 'utf8')).toBe(text);
  },
);

test('the operator comes from the environment when both parts are given, and no file is written', async () => {
  const data = await folder();
  const env = { SVC_OPERATOR_CLIENT_ID: 'client_shared', SVC_OPERATOR_CLIENT_SECRET: 'shared-secret' };
  const operator = {
    ...{ clientId: 'client_shared', clientSecret: 'shared-secret' },
    ...{ hostId: 'operator', namespaceId: 'default' },
  };
  expect(loadSecrets(data, env, random).operator).toEqual(operator);
  expect(readCredentials(data, env)).toEqual(operator);
  expect(readCredentials(data, {})).toBeNull();
  for (const name of Object.keys(env))
    expect(() => loadSecrets(data, { ...env, [name]: '' }, random)).toThrow(`${name} is not`);
});
