import { closeSync, fstatSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { messageOf } from '../kit/errors/errors.ts';
import { escapeControls } from '../kit/security/escape-controls.ts';

const MAX_BYTES = 10 * 1024 * 1024;
const MAX_FILES = 3;

/** Log file that is rotated at 10 MiB. The two previous files are kept as `<file>.1` and `<file>.2`. */
export interface LogFile {
  write(lines: string | Buffer): void;
  close(): void;
}

export interface LogFileOptions {
  maxBytes?: number;
  files?: number;
}

/**
 * Opens a log file for appending. Write errors are only reported once on stderr, because a full disk must not stop the
 * platform.
 */
export function openLogFile(
  file: string,
  { maxBytes = MAX_BYTES, files = MAX_FILES }: LogFileOptions = {},
): LogFile {
  let fd: number | null = null;
  let size = 0;
  let hasWarned = false;

  function open(): number {
    fd ??= openSync(file, 'a', 0o600);
    size = fstatSync(fd).size;
    return fd;
  }
  function close(): void {
    if (fd !== null) closeSync(fd);
    fd = null;
  }
  function rotate(): void {
    close();
    rmSync(`${file}.${files - 1}`, { force: true });
    for (let n = files - 2; n >= 0; n--) {
      const from = n === 0 ? file : `${file}.${n}`;
      try {
        renameSync(from, `${file}.${n + 1}`);
      } catch {
        // The file to rename does not exist yet.
      }
    }
  }
  return {
    write(lines) {
      try {
        const target = fd ?? open();
        size += writeSync(target, typeof lines === 'string' ? Buffer.from(lines) : lines);
        if (size >= maxBytes) rotate();
        hasWarned = false;
      } catch (error) {
        if (!hasWarned)
          process.stderr.write(
            `${escapeControls(`svc: cannot write to ${file}, so log lines are lost: ${messageOf(error)}`)}\n`,
          );
        hasWarned = true;
      }
    },
    close,
  };
}
