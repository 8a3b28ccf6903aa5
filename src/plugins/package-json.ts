import { join } from 'node:path';
import { isRecord } from '../kit/data/is-record.ts';
import { readUntrustedFile } from './untrusted-file.ts';

/** Size limit of `package.json`. Services read this file at each reload. */
const MAX_BYTES = 1024 * 1024;

/** Returns the parsed `package.json` of a folder. Returns undefined if the file is missing or unreadable. */
export async function readPackageJson(folder: string): Promise<Record<string, unknown> | undefined> {
  try {
    const value: unknown = JSON.parse(
      await readUntrustedFile(join(folder, 'package.json'), 'package.json', MAX_BYTES),
    );
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
