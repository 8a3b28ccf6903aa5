import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../../kit/errors/errors.ts';

/** Creates a missing file with mode 0600 and a missing folder with mode 0700. An existing file gets mode 0600. */
export function createPrivateFile(file: string): void {
  // An existing folder keeps its mode, because the folder might be shared or belong to another user.
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  try {
    // An existing file must not be opened, because closing the descriptor would drop the locks that SQLite holds on the
    // file in this process.
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
    // The mode cannot be changed on a read-only disk or for a file of another user. SQLite reports later whether the
    // file is usable.
    if (codeOf(error) !== 'EPERM' && codeOf(error) !== 'EROFS') throw error;
  }
}
