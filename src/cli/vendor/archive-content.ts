import { isRecord } from '../../kit/data/is-record.ts';
import { messageOf } from '../../kit/errors/errors.ts';
import { readTarGz, textOf } from '../../kit/files/tar/read.ts';

const MANIFEST = 'package/package.json';
const MAX_MANIFEST_BYTES = 1024 * 1024;

/** Package name and version in an npm archive, or the reason why the archive is unreadable. */
export type ArchiveContent = { name: unknown; version: unknown } | { fault: string };

/** Reads the whole archive, so that its checksums reveal truncated or modified files. */
export async function archiveContent(path: string): Promise<ArchiveContent> {
  try {
    let manifest: Record<string, unknown> | undefined;
    for await (const entry of readTarGz(path)) {
      if (entry.name !== MANIFEST || entry.type !== 'file' || entry.size > MAX_MANIFEST_BYTES) continue;
      const value: unknown = JSON.parse(await textOf(entry));
      if (isRecord(value)) manifest = value;
    }
    return manifest
      ? { name: manifest.name, version: manifest.version }
      : { fault: 'package.json is missing' };
  } catch (error) {
    return { fault: messageOf(error).replace(/\.$/, '') };
  }
}
