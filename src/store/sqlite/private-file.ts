import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../../kit/errors/errors.ts';

/** Creates a missing file with mode 0600 and a missing folder with mode 0700. An existing file gets mode 0600. */
export function createPrivateFile(file: string): void {
  // An existing folder keeps its mode, because the folder might be shared or belong to another user.
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  try {
    // Closing the descriptor of an existing file would drop the locks of SQLite, so an existing file is not opened.
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
    // The mode of a file cannot be changed on a read-only disk or for another user's file. SQLite later reports whether
    // the file is usable.
    if (codeOf(error) !== 'EPERM' && codeOf(error) !== 'EROFS') throw error;
  }
}
