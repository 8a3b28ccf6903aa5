import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../../kit/errors.ts';

/** Makes sure that the file exists and is its owner's alone: 0600, in a folder that is 0700 when we create it. */
export function createPrivateFile(file: string): void {
  // An existing folder keeps its mode: it may be shared, or not ours.
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  try {
    // Never opened when it exists: closing a descriptor of it would drop the locks that SQLite holds on it in this process.
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    tighten(file);
  }
}

function tighten(file: string): void {
  try {
    chmodSync(file, 0o600);
  } catch (error) {
    // Another user's file that we may write all the same, or one on a read-only disk: SQLite says whether it will do.
    if (codeOf(error) !== 'EPERM' && codeOf(error) !== 'EROFS') throw error;
  }
}
