import { chmod, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
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
  const size = 8 * 1024 * 1024;
  await writeFile(join(root, 'large.bin'), Buffer.alloc(size, 7));
  const settled = createIntegrityCache(later);
  expect(await bytesReadBy(() => settled(root))).toBeGreaterThanOrEqual(size);
  expect(await bytesReadBy(() => settled(root))).toBeLessThan(size / 4);

  const fresh = createIntegrityCache();
  await fresh(root);
  expect(await bytesReadBy(() => fresh(root))).toBeGreaterThanOrEqual(size);
});

/** Returns how many bytes this process reads from files and pipes while `run` runs. */
async function bytesReadBy(run: () => Promise<unknown>): Promise<number> {
  const before = await bytesRead();
  await run();
  return (await bytesRead()) - before;
}

async function bytesRead(): Promise<number> {
  return Number(/^rchar: (\d+)$/m.exec(await readFile('/proc/self/io', 'utf8'))![1]);
}
