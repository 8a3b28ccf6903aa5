import { createHmac, randomBytes, randomInt } from 'node:crypto';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { masterKeyId } from '../../src/kit/security/keys.ts';
import { acquireOwnerLock } from '../../src/store/sqlite/index.ts';
import { countSealedByKey } from '../../src/store/sqlite/snapshot.ts';
import { readKeys } from '../../src/supervisor/keys-file.ts';
import { type TestPlatform, testPlatform } from './platform.ts';
import { verifyAll, withSecrets } from './sealed-secrets.ts';

const SLOW = { timeout: 120_000 };

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

/** Adds the plugin whose webhooks `e0` and `e999` are the first and the last of 1000. */
async function addToy({ folder }: TestPlatform): Promise<void> {
  const root = join(folder, 'plugins', 'toy');
  await mkdir(root, { recursive: true });
  const webhooks = ['e0', 'e999'].map((event) => ({
    event,
    handler: 'hooks.js#handle',
    auth: { type: 'hmac', header: 'x-signature' },
  }));
  const manifest = { schema: 'svc.plugin/3', id: 'toy', version: '1.0.0', webhooks };
  await writeFile(join(root, 'svc.plugin.json'), JSON.stringify(manifest));
  await writeFile(join(root, 'package.json'), '{"type":"module"}');
  await writeFile(join(root, 'hooks.js'), 'export const handle = async () => null;');
}

async function deliver(gateway: string, event: string, secret: string): Promise<number> {
  const signature = createHmac('sha256', secret).update('{}').digest('hex');
  const headers = {
    'content-type': 'application/json',
    'x-svc-namespace': 'default',
    'x-signature': signature,
  };
  return (await fetch(`${gateway}/webhooks/toy/${event}`, { method: 'POST', headers, body: '{}' })).status;
}

test(
  'a platform starts with a half-done rotation and reads all secrets; the rotation continues',
  SLOW,
  async () => {
    const count = 1000;
    const { platform, folder, masterKey } = await withSecrets(count, {}, ['gateway', 'marketplace']);
    await addToy(platform);
    const file = join(folder.root, 'svc.db');
    const run = platform.start('keys', 'rotate', '--yes');
    await vi.waitFor(() => expect(countSealedByKey(file).size).toBe(2), { timeout: 30_000, interval: 1 });
    run.child.kill('SIGKILL');
    await run.done;
    const half = countSealedByKey(file);
    const [from, to] = [masterKeyId(masterKey), masterKeyId(readKeys(folder)!.masterKey)];
    expect([...half.keys()].toSorted()).toEqual([from, to].toSorted());

    expect((await platform.svc('up', '-d')).code).toBe(0);
    const gateway = (await platform.service('gateway')).url;
    for (const n of [0, 999])
      for (const secret of [`new-${n}`, `old-${n}`])
        expect(await deliver(gateway, `e${n}`, secret)).toBe(200);
    expect(await deliver(gateway, 'e0', 'wrong')).toBe(401);
    const status = await platform.svc('keys', 'status');
    expect(status.json).toMatchObject({
      ok: true,
      result: { keyId: to, old: [{ keyId: from, values: half.get(from), readable: true }] },
    });
    expect((await platform.svc('keys', 'rotate', '--yes')).json.error.details.hint).toBe('svc down');

    await platform.svc('down');
    const text = (await platform.start('keys', 'status').done).stdout;
    expect(text).toContain(`With the previous key ${from}: ${half.get(from)}.`);
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    const { json } = await platform.svc('keys', 'rotate', '--yes');
    expect(json.result).toMatchObject({
      keyId: to,
      resumed: true,
      values: half.get(from),
      replacedKeyIds: [from],
    });
    expect([...countSealedByKey(file)]).toEqual([[to, 2 * count]]);
    await verifyAll(platform, count);
  },
);

test('values of an unknown key are left unchanged and named, within 80 columns', SLOW, async () => {
  const { platform, folder, masterKey } = await withSecrets(2);
  const lost = masterKeyId(masterKey);
  const keys = { ...readKeys(folder), masterKey: randomBytes(32).toString('base64url') };
  await writeFile(folder.keys, JSON.stringify(keys), { mode: 0o600 });
  for (const args of [['status'], ['rotate', '--yes']]) {
    const { stdout, code } = await platform.start('keys', ...args).done;
    expect([code, stdout]).toEqual([0, expect.stringContaining(`unknown key ${lost}`)]);
    expect(stdout).toContain('Set SVC_MASTER_KEY_PREVIOUS to it');
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  }
  platform.env.SVC_MASTER_KEY_PREVIOUS = masterKey;
  const { json } = await platform.svc('keys', 'rotate', '--yes');
  expect(json.result).toMatchObject({ values: 4, resumed: false, replacedKeyIds: [lost], unreadable: [] });
  await verifyAll(platform, 2);
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
  const gateway = await acquireOwnerLock({ file: join(folder.root, 'svc.db'), waitMs: 0, label: 'gateway' });
  const locked = await platform.svc('keys', 'rotate', '--yes');
  expect(locked.json.error.message).toMatch(/svc\.db is in use by gateway \(pid \d+\)/);
  gateway.release();
  await platform.svc('up', '-d');
  const running = await platform.svc('keys', 'rotate', '--yes');
  expect(running.json.error).toMatchObject({ code: 'CONFLICT', details: { hint: 'svc down' } });
  expect(readKeys(folder)!.masterKey).toBe(masterKey);
});
