import { chmodSync, closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { codeOf } from '../../kit/errors/errors.ts';

/** Ensures that the file exists with mode 0600; a created folder gets 0700. */
export function createPrivateFile(file: string): void {
  // An existing folder keeps its mode: it may be shared or belong to another user.
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  try {
    // An existing file is never opened: closing the descriptor would drop the locks that SQLite holds on it in this
    // process.
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
    // The file belongs to another user or a read-only disk; SQLite reports whether it is usable.
    if (codeOf(error) !== 'EPERM' && codeOf(error) !== 'EROFS') throw error;
  }
}
