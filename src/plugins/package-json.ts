import { join } from 'node:path';
import { isRecord } from '../kit/is-record.ts';
import { readOwnFile } from './own-file.ts';

/** Services read it at each reload, so that one of a hundred megabytes would hold them up. */
const MAX_BYTES = 1024 * 1024;

/** What a folder's `package.json` says; undefined where there is none that can be read. */
export async function readPackageJson(folder: string): Promise<Record<string, unknown> | undefined> {
  try {
    const value: unknown = JSON.parse(
      await readOwnFile(join(folder, 'package.json'), 'package.json', MAX_BYTES),
    );
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
