import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '../kit/is-record.ts';

/** Services read it at each reload, so that one of a hundred megabytes would hold them up. */
const MAX_BYTES = 1024 * 1024;

/** What a folder's `package.json` says; undefined where there is none that can be read. */
export async function readPackageJson(folder: string): Promise<Record<string, unknown> | undefined> {
  const file = join(folder, 'package.json');
  try {
    const found = await stat(file);
    // A pipe would be waited for without end.
    if (!found.isFile() || found.size > MAX_BYTES) return undefined;
    const value: unknown = JSON.parse(await readFile(file, 'utf8'));
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
