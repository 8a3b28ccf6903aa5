import { closeSync, createWriteStream, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createGzip } from 'node:zlib';
import { draftPathOf } from '../../../kit/files/draft-path.ts';
import { type TarSource, tarOf } from '../../../kit/files/tar/write.ts';
import { storeError } from '../../../store/sqlite/store-error.ts';
import { type BackupManifest, DATA_PREFIX, MANIFEST_NAME } from './manifest.ts';

/**
 * Writes the archive atomically. Only the owner of the file can read the archive. Throws STORE_ERROR if writing fails.
 */
export async function writeArchive(target: string, manifest: BackupManifest, stage: string): Promise<void> {
  const draft = draftPathOf(target);
  try {
    await pipeline(
      Readable.from(tarOf(sourcesOf(manifest, stage), Math.floor(manifest.createdAt / 1000))),
      createGzip({ level: constants.Z_BEST_SPEED }),
      createWriteStream(draft, { flags: 'wx', mode: 0o600 }),
    );
    sync(draft);
    renameSync(draft, target);
  } catch (error) {
    rmSync(draft, { force: true });
    throw storeError(target, error);
  }
}

function* sourcesOf(manifest: BackupManifest, stage: string): Generator<TarSource> {
  yield { name: MANIFEST_NAME, mode: 0o600, text: `${JSON.stringify(manifest, null, 2)}\n` };
  for (const { name, size, mode } of manifest.files)
    yield { name: DATA_PREFIX + name, mode, path: join(stage, name), size };
}

function sync(file: string): void {
  const fd = openSync(file, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
