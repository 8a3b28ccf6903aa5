import { createWriteStream, renameSync, rmSync } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { draftPathOf } from '../../../kit/files/draft-path.ts';
import { tarOf } from '../../../kit/files/tar/write.ts';
import { storeError } from '../../../store/sqlite/store-error.ts';

/**
 * Writes a compressed archive of text files. `texts` maps file names to contents. Throws STORE_ERROR if writing fails.
 */
export async function writeBundle(file: string, texts: Record<string, string>, now: number): Promise<void> {
  const draft = draftPathOf(file);
  const sources = Object.entries(texts).map(([name, text]) => ({
    name: `svc-report/${name}`,
    mode: 0o600,
    text,
  }));
  try {
    await pipeline(
      Readable.from(tarOf(sources, Math.floor(now / 1000))),
      createGzip(),
      createWriteStream(draft, { flags: 'wx', mode: 0o600 }),
    );
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw storeError(file, error);
  }
}
