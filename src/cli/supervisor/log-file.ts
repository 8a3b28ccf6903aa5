import { closeSync, fstatSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { messageOf } from '../../kit/errors.ts';
import { harmless } from '../harmless.ts';

const MAX_BYTES = 10 * 1024 * 1024;
const FILES = 3;

/** Appends whole lines to `<file>`; at 10 MiB it becomes `<file>.1`, and that `<file>.2`, which is the last. */
export interface LogFile {
  write(lines: string | Buffer): void;
  close(): void;
}

export interface LogFileOptions {
  maxBytes?: number;
  files?: number;
}

/** Logs are losable: a full disk must not stop the platform. It is said once on stderr, and tried again with the next lines. */
export function openLogFile(
  file: string,
  { maxBytes = MAX_BYTES, files = FILES }: LogFileOptions = {},
): LogFile {
  let fd: number | null = null;
  let size = 0;
  let complained = false;

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
        // That one does not exist yet.
      }
    }
  }
  return {
    write(lines) {
      try {
        const target = fd ?? open();
        size += writeSync(target, typeof lines === 'string' ? Buffer.from(lines) : lines);
        if (size >= maxBytes) rotate();
        complained = false;
      } catch (error) {
        if (!complained)
          process.stderr.write(`${harmless(`svc: lines for ${file} are lost: ${messageOf(error)}`)}\n`);
        complained = true;
      }
    },
    close,
  };
}
