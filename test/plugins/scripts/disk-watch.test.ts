import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test, vi } from 'vitest';
import { DiskWatch } from '../../../src/plugins/scripts/disk-watch.ts';
import { FolderWalk } from '../../../src/plugins/scripts/folder-walk.ts';
import { removeFolder } from '../../../src/plugins/scripts/remove-folder.ts';
import { atEnd } from '../../support/at-end.ts';
import { tempDir } from '../../support/daemon.ts';
import { nameOfBytes, nestBeyondPaths } from './support/hostile-folders.ts';

const MEGABYTE = 1024 * 1024;
const rootOf = (path: string) => ({ path, shownAs: '/workspace' });

/** Returns what ends the script. */
function ended(folders: string[], limits: { bytes: number; files: number }) {
  return new Promise<string>((resolve) => {
    atEnd(new DiskWatch(limits).watch(folders.map(rootOf), resolve));
  });
}

test('a folder with too many files, or too large ones, is over its limit', async () => {
  const folder = await tempDir();
  await mkdir(join(folder, 'deep'));
  for (const name of ['a', 'b', 'deep/c']) await writeFile(join(folder, name), Buffer.alloc(MEGABYTE, 1));
  expect(await ended([folder], { bytes: 1e9, files: 3 })).toBe('wrote more than 3 files');
  expect(await ended([folder], { bytes: 2 * MEGABYTE, files: 9 })).toBe('wrote more than 2 MB of files');
});

test('links and missing folders count nothing', async () => {
  const [folder, other, full] = [await tempDir(), await tempDir(), await tempDir()];
  await writeFile(join(other, 'large'), Buffer.alloc(MEGABYTE, 1));
  await symlink(other, join(folder, 'link'));
  await writeFile(join(full, 'large'), Buffer.alloc(MEGABYTE, 1));
  const watch = new DiskWatch({ bytes: MEGABYTE / 2, files: 2 });
  const over: string[] = [];
  for (const path of [folder, join(folder, 'absent'), full])
    atEnd(watch.watch([rootOf(path)], () => over.push(path)));
  // The folders are walked in their order.
  await expect.poll(() => over).toEqual([full]);
});

test('the sizes of several folders are added up', async () => {
  const folders = [await tempDir(), await tempDir()];
  for (const folder of folders) await writeFile(join(folder, 'half'), Buffer.alloc(MEGABYTE, 1));
  expect(await ended(folders, { bytes: 1.5 * MEGABYTE, files: 9 })).toBe('wrote more than 1.5 MB of files');
  expect(await ended(folders, { bytes: 9 * MEGABYTE, files: 1 })).toBe('wrote more than 1 files');
});

test('a folder is not watched any more once it has exceeded a limit, or its watch was stopped', async () => {
  const [first, second] = [await tempDir(), await tempDir()];
  for (const folder of [first, second]) await writeFile(join(folder, 'file'), '');
  const watch = new DiskWatch({ bytes: MEGABYTE, files: 0 });
  const over: string[] = [];
  const stop = watch.watch([rootOf(second)], () => over.push('stopped'));
  watch.watch([rootOf(first)], () => over.push('first'));
  stop();
  await expect.poll(() => over).toEqual(['first']);
  watch.watch([rootOf(second)], () => over.push('second'));
  await expect.poll(() => over).toEqual(['first', 'second']);
});

test('folders are walked one after the other', async () => {
  let [active, most] = [0, 0];
  const { fault } = FolderWalk.prototype;
  vi.spyOn(FolderWalk.prototype, 'fault').mockImplementation(async function (this: FolderWalk, isStopped) {
    most = Math.max(most, ++active);
    const found = await fault.call(this, isStopped);
    active--;
    return found;
  });
  atEnd(() => vi.restoreAllMocks());
  const watch = new DiskWatch({ bytes: MEGABYTE, files: 9 });
  for (const name of ['a', 'b', 'c']) {
    const folder = await tempDir();
    for (let files = 0; files < 9; files++) await writeFile(join(folder, `${name}${files}`), '');
    atEnd(watch.watch([rootOf(folder)], () => {}));
  }
  await expect.poll(() => vi.mocked(FolderWalk.prototype.fault).mock.calls.length).toBeGreaterThan(3);
  expect(most).toBe(1);
});

test('files are counted whose names are not UTF-8', async () => {
  const folder = await tempDir();
  await mkdir(nameOfBytes(folder));
  await writeFile(nameOfBytes(nameOfBytes(folder)), Buffer.alloc(MEGABYTE, 1));
  expect(await ended([folder], { bytes: MEGABYTE / 2, files: 9 })).toBe('wrote more than 0.5 MB of files');
});

test('folders are refused that are too deep to be counted', async () => {
  const limits = { bytes: MEGABYTE, files: 1000 };
  const [deep, long] = [await tempDir(), await tempDir()];
  await mkdir(join(deep, ...Array.from({ length: 65 }, () => 'd')), { recursive: true });
  expect(await ended([deep], limits)).toBe('nested its folders more than 64 levels deep');
  atEnd(() => removeFolder(long));
  await nestBeyondPaths(long);
  expect(await ended([long], limits)).toMatch(
    /^has files whose size cannot be read \(ENAMETOOLONG in \/workspace\/(long-){5}/,
  );
});

test.skipIf(process.getuid?.() === 0)(
  'folders are refused that cannot be read (root can read all)',
  async () => {
    const limits = { bytes: MEGABYTE, files: 1000 };
    for (const mode of [0o000, 0o400]) {
      const folder = await tempDir();
      const closed = join(folder, 'closed');
      await mkdir(closed);
      await writeFile(join(closed, 'large'), Buffer.alloc(2 * MEGABYTE, 1));
      await chmod(closed, mode);
      atEnd(() => chmod(closed, 0o700));
      expect(await ended([folder], limits)).toBe(
        'has files whose size cannot be read (EACCES in /workspace/closed)',
      );
    }
  },
);
