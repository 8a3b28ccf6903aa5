import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type DiskWatchDeps, watchDisk } from '../../../src/plugins/scripts/disk-watch.ts';
import { atEnd } from '../../support/at-end.ts';
import { tempDir } from '../../support/daemon.ts';

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
