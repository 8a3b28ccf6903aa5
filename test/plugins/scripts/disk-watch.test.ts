import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { expect, test } from 'vitest';
import { type DiskWatchDeps, watchDisk } from '../../../src/plugins/scripts/disk-watch.ts';
import { removeFolder } from '../../../src/plugins/scripts/remove-folder.ts';
import { atEnd } from '../../support/at-end.ts';
import { tempDir } from '../../support/daemon.ts';
import { nameOfBytes, nestBeyondPaths } from './support/hostile-folders.ts';

const MEGABYTE = 1024 * 1024;
const noFault = async () => undefined;

/** Returns what ends the script. */
function ended(folder: string, limits: { bytes: number; files: number }, check: DiskWatchDeps['check']) {
  return new Promise<string>((resolve) => {
    atEnd(watchDisk({ folder, limits, check, onOver: resolve }));
  });
}

test('a folder with too many files, or too large ones, is over its limit', async () => {
  const folder = await tempDir();
  await mkdir(join(folder, 'deep'));
  for (const name of ['a', 'b', 'deep/c']) await writeFile(join(folder, name), Buffer.alloc(MEGABYTE, 1));
  expect(await ended(folder, { bytes: 1e9, files: 3 }, noFault)).toBe('wrote more than 3 files');
  expect(await ended(folder, { bytes: 2 * MEGABYTE, files: 9 }, noFault)).toBe(
    'wrote more than 2 MB of files',
  );
});

test('links and missing folders count nothing, and a further check can end the script', async () => {
  const [folder, other] = [await tempDir(), await tempDir()];
  await writeFile(join(other, 'large'), Buffer.alloc(MEGABYTE, 1));
  await symlink(other, join(folder, 'link'));
  const limits = { bytes: MEGABYTE / 2, files: 2 };
  for (const path of [folder, join(folder, 'absent')]) {
    let checks = 0;
    const check = async () => (++checks === 2 ? 'said so' : undefined);
    expect(await ended(path, limits, check)).toBe('said so');
  }
});

test('files are counted whose names are not UTF-8', async () => {
  const folder = await tempDir();
  await mkdir(nameOfBytes(folder));
  await writeFile(nameOfBytes(nameOfBytes(folder)), Buffer.alloc(MEGABYTE, 1));
  expect(await ended(folder, { bytes: MEGABYTE / 2, files: 9 }, noFault)).toBe(
    'wrote more than 0.5 MB of files',
  );
});

test('folders are refused that are too deep to be counted', async () => {
  const limits = { bytes: MEGABYTE, files: 1000 };
  const [deep, long] = [await tempDir(), await tempDir()];
  await mkdir(join(deep, ...Array.from({ length: 65 }, () => 'd')), { recursive: true });
  expect(await ended(deep, limits, noFault)).toBe('nested its folders more than 64 levels deep');
  atEnd(() => removeFolder(long));
  await nestBeyondPaths(long);
  expect(await ended(long, limits, noFault)).toMatch(
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
      expect(await ended(folder, limits, noFault)).toBe(
        'has files whose size cannot be read (EACCES in /workspace/closed)',
      );
    }
  },
);
