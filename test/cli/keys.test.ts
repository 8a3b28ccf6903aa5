import { randomBytes, randomInt } from 'node:crypto';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { sealContext } from '../../src/daemons/gateway/domain/webhooks/verify/secrets.ts';
import { createSeal, masterKeyId } from '../../src/kit/security/keys.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { silentLogger } from '../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../src/kit/time/clock.ts';
import { sqliteGatewayStore } from '../../src/store/sqlite/index.ts';
import { dataFolder, ensureDataFolder } from '../../src/supervisor/data-folder.ts';
import { loadSecrets, readKeys } from '../../src/supervisor/keys-file.ts';
import { type TestPlatform, testPlatform } from './platform.ts';

const SLOW = { timeout: 120_000 };
const keyOf = (n: number) => ({ namespaceId: 'default', pluginId: 'toy', event: `e${n}`, instanceId: '' });

/** A stopped platform with `count` webhooks, each with a current and a previous secret. */
async function withSecrets(count: number, env: Record<string, string | undefined> = {}) {
  const platform = await testPlatform({}, { SVC_MASTER_KEY: undefined, ...env });
  const folder = dataFolder(platform.dataDir);
  await mkdir(folder.root, { recursive: true });
  ensureDataFolder(folder);
  const { keys } = loadSecrets(folder, env, systemRandom());
  const seal = createSeal(keys.masterKey);
  const clock = systemClock;
  const store = await sqliteGatewayStore({ dataDir: folder.root, clock, logger: silentLogger });
  const rotate = (n: number, secret: string) => {
    const sealed = seal.seal(secret, sealContext(keyOf(n)));
    const graceEndsAt = clock.now() + 1e9;
    return store.secrets.rotate(keyOf(n), { sealed, now: clock.now(), graceEndsAt, namespaceInUrl: false });
  };
  for (const age of ['old', 'new'])
    await Promise.all(Array.from({ length: count }, (_, n) => rotate(n, `${age}-${n}`)));
  await store.close();
  return { platform, folder, masterKey: keys.masterKey };
}

/** Decrypts every secret with the keys that a start would have. */
async function verifyAll({ dataDir }: TestPlatform, count: number, env = {}): Promise<void> {
  const { keys } = loadSecrets(dataFolder(dataDir), env, systemRandom());
  const seal = createSeal(keys.masterKey, keys.previousMasterKeys);
  const store = await sqliteGatewayStore({ dataDir, clock: systemClock, logger: silentLogger });
  const records = await store.secrets.list('default');
  await store.close();
  expect(records).toHaveLength(count);
  for (const record of records) {
    const n = record.event.slice(1);
    expect(seal.open(record.current, sealContext(record))).toBe(`new-${n}`);
    expect(seal.open(record.previous!, sealContext(record))).toBe(`old-${n}`);
  }
}

test('a rotation killed at any moment leaves all secrets readable, and continues', SLOW, async () => {
  const count = 3000;
  const { platform, folder, masterKey } = await withSecrets(count);
  let last: string | undefined;
  for (let kill = 0; kill < 6; kill++) {
    const run = platform.start('keys', 'rotate', '--yes', '--json');
    for (let waited = 0; waited < 200 && readKeys(folder)?.masterKey === (last ?? masterKey); waited++)
      await sleep(5);
    await sleep(randomInt(60));
    run.child.kill('SIGKILL');
    await run.done;
    last = readKeys(folder)!.masterKey;
    await verifyAll(platform, count);
  }
  const { code, json } = await platform.svc('keys', 'rotate', '--yes');
  expect(code).toBe(0);
  const now = readKeys(folder)!;
  expect(now).not.toHaveProperty('previousMasterKey');
  expect(now.masterKey).not.toBe(masterKey);
  expect(json.result).toMatchObject({ keyId: masterKeyId(now.masterKey), unreadable: [] });
  await verifyAll(platform, count);
  const status = await platform.svc('keys', 'status');
  expect(status.json.result).toMatchObject({ current: 2 * count, old: [], previousKeyIds: [] });
  expect((await stat(folder.keys)).mode & 0o777).toBe(0o600);
  expect(await readFile(folder.keys, 'utf8')).not.toContain(masterKey);
});

test('keys are printed as fingerprints only, within 80 columns', SLOW, async () => {
  const { platform, folder, masterKey } = await withSecrets(3);
  const rotated = await platform.start('keys', 'rotate', '--yes').done;
  const status = await platform.start('keys', 'status').done;
  const after = readKeys(folder)!.masterKey;
  for (const { stdout, stderr, code } of [rotated, status]) {
    expect(code).toBe(0);
    expect(stdout + stderr).not.toContain(masterKey);
    expect(stdout + stderr).not.toContain(after);
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  }
  expect(rotated.stdout).toContain(`6 values encrypted with master key ${masterKeyId(after)}.`);
  expect(status.stdout).toContain(masterKeyId(after));
});

test('a key of the environment is replaced by naming the former one', SLOW, async () => {
  const old = randomBytes(32).toString('base64url');
  const { platform } = await withSecrets(5, { SVC_MASTER_KEY: old });
  const refused = await platform.svc('keys', 'rotate', '--yes');
  expect(refused.json.error).toMatchObject({ code: 'CONFLICT', details: { keyId: masterKeyId(old) } });
  const next = { SVC_MASTER_KEY: randomBytes(32).toString('base64url'), SVC_MASTER_KEY_PREVIOUS: old };
  Object.assign(platform.env, next);
  await verifyAll(platform, 5, next);
  const { json } = await platform.svc('keys', 'rotate', '--yes');
  expect(json.result).toMatchObject({
    values: 10,
    replacedKeyIds: [masterKeyId(old)],
    source: 'environment',
  });
  await verifyAll(platform, 5, { SVC_MASTER_KEY: next.SVC_MASTER_KEY });
});

test('malformed keys, missing keys, missing consent and a running platform are refused', SLOW, async () => {
  const empty = await testPlatform({}, { SVC_MASTER_KEY: undefined });
  expect((await empty.svc('keys', 'status')).json.error.code).toBe('NOT_FOUND');
  const { platform, folder, masterKey } = await withSecrets(1);
  expect((await platform.svc('keys', 'rotate')).json.error.code).toBe('VALIDATION_ERROR');
  platform.env.SVC_MASTER_KEY_PREVIOUS = 'short';
  const malformed = await platform.svc('keys', 'rotate', '--yes');
  expect(malformed.json.error.message).toBe('SVC_MASTER_KEY_PREVIOUS is not 32 bytes in base64url.');
  delete platform.env.SVC_MASTER_KEY_PREVIOUS;
  await platform.svc('up', '-d');
  const running = await platform.svc('keys', 'rotate', '--yes');
  expect(running.json.error).toMatchObject({ code: 'CONFLICT', details: { hint: 'svc down' } });
  expect(readKeys(folder)!.masterKey).toBe(masterKey);
});
