import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { isRecord } from '../../kit/data/is-record.ts';
import { messageOf } from '../../kit/errors/errors.ts';
import { readTar } from '../../kit/files/tar/read.ts';

const MANIFEST = 'package/package.json';
const MAX_MANIFEST_BYTES = 1024 * 1024;

/** Name and version of an npm archive; `fault` if it is unreadable. */
export type ArchiveContent = { name: unknown; version: unknown } | { fault: string };

/** Reads the whole archive, so that truncation and changes are detected by its checksums. */
export async function archiveContent(path: string): Promise<ArchiveContent> {
  const source = createReadStream(path);
  const unpacked = createGunzip();
  // pipe() forwards no errors, so an unreadable file would crash the process.
  source.on('error', (error) => unpacked.destroy(error));
  const chunks = source.pipe(unpacked)[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const tar = readTar({ [Symbol.asyncIterator]: () => chunks, destroy: () => void unpacked.destroy() });
  try {
    let manifest: Record<string, unknown> | undefined;
    for (let entry = await tar.next(); entry; entry = await tar.next()) {
      if (entry.name !== MANIFEST || entry.size > MAX_MANIFEST_BYTES) {
        await tar.skip(entry.size);
        continue;
      }
      const parts: Buffer[] = [];
      await tar.copy(entry.size, (part) => void parts.push(part));
      const value: unknown = JSON.parse(Buffer.concat(parts).toString('utf8'));
      if (isRecord(value)) manifest = value;
    }
    // The gzip checksum follows the last entry.
    while (!(await chunks.next()).done);
    return manifest
      ? { name: manifest.name, version: manifest.version }
      : { fault: 'package.json is missing' };
  } catch (error) {
    return { fault: messageOf(error).replace(/\.$/, '') };
  } finally {
    tar.close();
    source.destroy();
  }
}
