import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { masterKeyId } from '../../src/kit/security/keys.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { readKeys, startKeyRotation } from '../../src/supervisor/keys-file.ts';
import { PROGRAM, type TestPlatform, testPlatform } from './platform.ts';
import { storeSecrets, verifyAll, withSecrets } from './sealed-secrets.ts';

const SLOW = { timeout: 120_000 };

/** Called around the moment in which the snapshot of a database is fixed. */
const hooks = vi.hoisted(() => ({ before: () => {}, after: () => {} }));
vi.mock('../../src/store/sqlite/snapshot.ts', async (original) => {
  const actual = await original<typeof import('../../src/store/sqlite/snapshot.ts')>();
  const openSnapshot: typeof actual.openSnapshot = (...args) => {
    hooks.before();
    const snapshot = actual.openSnapshot(...args);
    hooks.after();
    return snapshot;
  };
  return { ...actual, openSnapshot };
});

afterEach(() => void vi.restoreAllMocks());

/** Rotates the master key in another process, the first time it is called. */
function rotateOnce({ folder, env }: TestPlatform): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    const [command, ...first] = PROGRAM;
    execFileSync(command!, [...first, 'keys', 'rotate', '--yes'], { cwd: folder, env, stdio: 'ignore' });
  };
}

test.each(['before', 'after'] as const)(
  'a key rotated %s the snapshot still decrypts the backup',
  SLOW,
  async (when) => {
    const { platform, masterKey, folder } = await withSecrets(20);
    vi.spyOn(hooks, when).mockImplementation(rotateOnce(platform));
    const archive = join(platform.folder, '..', 'backup.tar.gz');
    const made = await platform.svc('backup', archive);
    expect(made.json).toMatchObject({ ok: true, result: { withKeys: true } });
    expect(readKeys(folder)!.masterKey).not.toBe(masterKey);

    const target = await testPlatform({}, { SVC_MASTER_KEY: undefined });
    const restored = await target.svc('restore', archive);
    expect(restored.json).toMatchObject({ ok: true, result: { secretsOpen: true } });
    await verifyAll(target, 20);
  },
);

test('a backup during which the key never stays the same is refused and leaves nothing', SLOW, async () => {
  const { platform, folder } = await withSecrets(1);
  vi.spyOn(hooks, 'after').mockImplementation(() =>
    startKeyRotation(folder, readKeys(folder)!, systemRandom().secret(32), 1),
  );
  const archive = join(platform.folder, '..', 'backup.tar.gz');
  const { code, json } = await platform.svc('backup', archive);
  expect([code, json.error]).toMatchObject([
    1,
    { code: 'CONFLICT', details: { hint: expect.stringContaining('svc keys rotate') } },
  ]);
  expect(existsSync(archive)).toBe(false);
  expect(readdirSync(folder.run).filter((name) => name.startsWith('backup-'))).toEqual([]);
});

test('restore names each missing key and how to provide it', SLOW, async () => {
  const { platform, folder, masterKey: from } = await withSecrets(2);
  startKeyRotation(folder, readKeys(folder)!, systemRandom().secret(32), 1);
  const to = readKeys(folder)!.masterKey;
  await storeSecrets(folder, [{ n: 0, secret: 'newest' }]);
  const archive = join(platform.folder, '..', 'backup.tar.gz');
  await platform.svc('backup', archive, '--without-keys');

  const target = await testPlatform({}, { SVC_MASTER_KEY: undefined });
  const restore = async (env: Record<string, string>) => {
    Object.assign(target.env, { SVC_MASTER_KEY: undefined, SVC_MASTER_KEY_PREVIOUS: undefined }, env);
    const { json, stderr } = await target.svc('restore', archive, '--yes');
    if (json.result.former) await rm(json.result.former, { recursive: true });
    return [json.result.secretsOpen, stderr.replaceAll('\n', ' ')];
  };
  const [none, noneText] = await restore({});
  expect([none, noneText]).toEqual([false, expect.stringContaining('but the current one is none.')]);
  expect(noneText).toContain('set SVC_MASTER_KEY and SVC_MASTER_KEY_PREVIOUS to these keys');
  expect(await restore({ SVC_MASTER_KEY: to })).toEqual([
    false,
    expect.stringMatching(
      new RegExp(
        `with master key ${masterKeyId(from)}, but the current one is ${masterKeyId(to)}\\. .*set SVC_MASTER_KEY_PREVIOUS to that key and run svc keys rotate`,
      ),
    ),
  ]);
  expect((await restore({ SVC_MASTER_KEY: to, SVC_MASTER_KEY_PREVIOUS: from }))[0]).toBe(true);
  const { json } = await target.svc('keys', 'rotate', '--yes');
  expect(json.result).toMatchObject({ values: 3, unreadable: [], source: 'environment' });
});
