import { chmod, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createIntegrityCache, integrityOf } from '../../src/plugins/index.ts';
import { writeFiles } from '../daemons/marketplace/support.ts';
import { tempDir } from '../support/daemon.ts';

/** As if the files had lain there for an hour. */
const later = () => Date.now() + 3600_000;

const folder = async () =>
  writeFiles(await tempDir(), { 'a.js': 'export const a = 1;', 'lib/b.js': 'export const b = 2;' });

test.each<[what: string, change: (root: string) => Promise<unknown>]>([
  ['changed', (root) => writeFile(join(root, 'a.js'), 'export const a = 3;')],
  ['added', (root) => writeFile(join(root, 'lib/c.js'), '')],
  ['taken away', (root) => rm(join(root, 'lib/b.js'))],
  ['renamed', (root) => rename(join(root, 'a.js'), join(root, 'c.js'))],
  ['made executable', (root) => chmod(join(root, 'a.js'), 0o755)],
])('a file that is %s gives another digest, also where the former one is remembered', async (_, change) => {
  const root = await folder();
  const cached = createIntegrityCache(later);
  const before = await cached(root);
  expect(before).toBe(await integrityOf(root));
  await change(root);
  expect(await cached(root)).not.toBe(before);
  expect(await cached(root)).toBe(await integrityOf(root));
});

test('a change that restores size and time is still detected', async () => {
  const root = await folder();
  const file = join(root, 'a.js');
  const cached = createIntegrityCache(later);
  const before = await cached(root);
  const { atime, mtime, size } = await stat(file);
  await writeFile(file, 'export const a = 7;');
  await utimes(file, atime, mtime);
  expect((await stat(file)).size).toBe(size);
  expect(await cached(root)).not.toBe(before);
});

test('files are read again only when they were touched, or might have been just now', async () => {
  const root = await folder();
  await writeFile(join(root, 'large.bin'), Buffer.alloc(64 * 1024 * 1024, 7));
  const costOf = async (run: () => Promise<string>) => {
    const before = process.cpuUsage();
    await run();
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  const settled = createIntegrityCache(later);
  const reading = await costOf(() => settled(root));
  expect(await costOf(() => settled(root))).toBeLessThan(reading / 4);

  const fresh = createIntegrityCache();
  await fresh(root);
  expect(await costOf(() => fresh(root))).toBeGreaterThan(reading / 4);
});
