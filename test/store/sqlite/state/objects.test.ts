import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { systemRandom } from '../../../../src/kit/security/random.ts';
import { silentLogger } from '../../../../src/kit/telemetry/logger.ts';
import { type ManualClock, manualClock } from '../../../../src/kit/time/clock.ts';
import { requireObjectKey } from '../../../../src/store/ports/index.ts';
import { OBJECTS_FOLDER, sqliteStateStore } from '../../../../src/store/sqlite/index.ts';
import { tempDir } from '../../../support/daemon.ts';
import { describeObjects } from '../../suites/objects.ts';
import { startProgram } from '../programs/start.ts';

const SCOPE = { tenant: 'acme', namespace: 'plugin:x' };
const OTHER = { tenant: 'other', namespace: 'plugin:x' };

async function open(dataDir: string, quotaBytes = 1e9, clock: ManualClock = manualClock()) {
  const store = await sqliteStateStore({ dataDir, clock, logger: silentLogger });
  const objects = store.openObjects({ quotaBytes, random: systemRandom() });
  return { objects, close: () => store.close() };
}

async function filesIn(dataDir: string): Promise<string[]> {
  const names = await readdir(join(dataDir, OBJECTS_FOLDER), { recursive: true }).catch(() => []);
  return names.filter((name) => name.includes('/'));
}

describeObjects('files', async ({ dataDir, clock }) => {
  const store = await sqliteStateStore({ dataDir, clock, logger: silentLogger });
  const port = store.openObjects({ quotaBytes: 1e9, random: systemRandom() });
  return { port, close: () => store.close() };
});

test("files and folders are their owner's alone, named by nothing that a plugin said", async () => {
  const dataDir = await tempDir();
  const { objects, close } = await open(dataDir);
  await objects.write(SCOPE, 'some/key', Buffer.from('secret'));
  await close();
  const [file, ...others] = await filesIn(dataDir);
  expect(others).toEqual([]);
  expect(file).toMatch(/^[0-9a-f]{2}\/[0-9a-f-]{36}$/);
  const modes = await Promise.all(
    [file!, file!.slice(0, 2), ''].map(
      async (name) => (await stat(join(dataDir, OBJECTS_FOLDER, name))).mode & 0o777,
    ),
  );
  expect(modes).toEqual([0o600, 0o700, 0o700]);
});

test('a quota applies per tenant, and replaced and deleted objects free their space', async () => {
  const { objects, close } = await open(await tempDir(), 100);
  const write = (key: string, bytes: number, scope = SCOPE) =>
    objects.write(scope, key, new Uint8Array(bytes));
  await write('a', 60);
  await expect(write('b', 41)).rejects.toMatchObject({
    code: 'QUOTA_EXCEEDED',
    details: { used: 60, quotaBytes: 100 },
  });
  await write('b', 41, OTHER);
  await write('a', 100);
  await objects.delete(SCOPE, 'a');
  await write('b', 100);
  await close();
});

test('concurrent writes never exceed the quota together', async () => {
  const dataDir = await tempDir();
  const { objects, close } = await open(dataDir, 100);
  const outcomes = await Promise.allSettled(
    Array.from({ length: 10 }, (_, index) => objects.write(SCOPE, `k${index}`, new Uint8Array(30))),
  );
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
  expect(await filesIn(dataDir)).toHaveLength(3);
  await close();
});

test('only files without a row are removed at the next start', async () => {
  const dataDir = await tempDir();
  const first = await open(dataDir);
  await first.objects.write(SCOPE, 'kept', Buffer.from('kept'));
  await first.close();
  await mkdir(join(dataDir, OBJECTS_FOLDER, 'ff'), { recursive: true });
  await writeFile(join(dataDir, OBJECTS_FOLDER, 'ff', '0190-half-written-ff'), 'half');
  const second = await open(dataDir);
  await second.objects.write(SCOPE, 'new', Buffer.from('new'));
  await second.objects.close();
  expect(await filesIn(dataDir)).toHaveLength(2);
  expect(Buffer.from((await second.objects.read(SCOPE, 'kept'))!.data).toString()).toBe('kept');
  await second.close();
});

test('after kill -9, every object is complete, acknowledged writes are kept, and no orphan remains', async () => {
  const dataDir = await tempDir();
  const acknowledged = new Map<string, number>();
  for (const first of [0, 100_000, 200_000]) {
    const writer = startProgram('keep-objects', dataDir, String(first));
    await writer.printed(100);
    await writer.kill();
    for (const line of writer.lines) {
      const [key, version] = line.split(' ') as [string, string];
      acknowledged.set(key, Math.max(acknowledged.get(key) ?? 0, Number(version)));
    }
    const { objects, close } = await open(dataDir);
    for (const [key, version] of acknowledged) {
      const versions = Buffer.from((await objects.read(SCOPE, key))!.data)
        .toString()
        .trim()
        .split('\n');
      expect([key, versions.length, new Set(versions).size]).toEqual([key, 2000, 1]);
      expect(Number(versions[0])).toBeGreaterThanOrEqual(version);
    }
    // Settles once what the crash left is gone.
    await objects.close();
    expect(await filesIn(dataDir)).toHaveLength(
      (await objects.list(SCOPE, { prefix: '', limit: 100 })).length,
    );
    await close();
  }
});

test.each([
  ['', '1 to 512'],
  ['/abs', 'empty segment'],
  ['a//b', 'empty segment'],
  ['a/', 'empty segment'],
  ['../up', '".."'],
  ['a/./b', '"."'],
  ['a\\..\\b', 'backslash'],
  ['nul\0', 'control'],
  ['\ud800', 'surrogate'],
  ['x'.repeat(513), '512'],
  [`${'ü'.repeat(128)}`, '255 bytes'],
])('the key %j is rejected', (key, why) => {
  expect(() => requireObjectKey(key)).toThrow(
    expect.objectContaining({ code: 'VALIDATION_ERROR', message: expect.stringContaining(why) }),
  );
});

test.each(['a', '...', '.hidden', 'a/b..c/~', 'ü/日本'])('the key %j is accepted', (key) => {
  expect(() => requireObjectKey(key)).not.toThrow();
});
