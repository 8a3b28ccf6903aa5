import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';
import { messageOf } from '../../kit/errors.ts';
import { isRecord } from '../../kit/is-record.ts';
import { readTar } from '../../kit/tar/read.ts';

const MANIFEST = 'package/package.json';
const MAX_MANIFEST_BYTES = 1024 * 1024;

/** What an npm archive holds; `fault` where it cannot be read to its end. */
export type ArchiveContent = { name: unknown; version: unknown } | { fault: string };

/** Reads a whole npm archive, so that one that was cut off or changed is found by its checksums. */
export async function archiveContent(path: string): Promise<ArchiveContent> {
  const source = createReadStream(path);
  const unpacked = createGunzip();
  // Without this a file that cannot be read would end the process: pipe forwards no errors.
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
    // The checksum of all comes after the last entry.
    while (!(await chunks.next()).done);
    return manifest
      ? { name: manifest.name, version: manifest.version }
      : { fault: 'it has no package.json' };
  } catch (error) {
    return { fault: messageOf(error).replace(/\.$/, '') };
  } finally {
    tar.close();
    source.destroy();
  }
}
