import { codeOf, PlatformError } from '../../kit/errors/errors.ts';

/** Error messages by SQLite and system error codes. The first matching entry applies. */
const FAULTS: Array<[codes: RegExp, says: (file: string) => string]> = [
  [
    /^SQLITE_NOTADB/,
    (file) =>
      `${file} is not a database of this platform. Move it away and start again, or restore a backup with \`svc restore\`.`,
  ],
  [
    /^SQLITE_CORRUPT/,
    (file) =>
      `${file} is damaged. Restore a backup with \`svc restore\`, or move the file away to start without its data.`,
  ],
  [
    /^(?:SQLITE_FULL|ENOSPC|EDQUOT)/,
    (file) =>
      `There is no room left to write ${file}. Nothing that was acknowledged is lost; free disk space and try again.`,
  ],
  [
    /^(?:SQLITE_READONLY|SQLITE_PERM|SQLITE_AUTH|EACCES|EPERM|EROFS)/,
    (file) =>
      `${file} cannot be written. Give this user write access to the file and its folder, or set SVC_HOME to another folder.`,
  ],
  [
    /^(?:SQLITE_CANTOPEN|ENOENT|ENOTDIR|EEXIST|EISDIR|ELOOP|ENAMETOOLONG)/,
    (file) =>
      `${file} cannot be opened. Its folder must exist, be a folder and be writable; SVC_HOME names another one.`,
  ],
  [
    /^(?:SQLITE_BUSY|SQLITE_LOCKED|SQLITE_PROTOCOL)/,
    (file) =>
      `${file} stayed locked by another process. Find it with \`svc status\`, or end the program that has the file open (a database browser, a backup).`,
  ],
  [
    /^(?:SQLITE_IOERR|EIO|EMFILE|ENFILE)/,
    (file) => `The system failed to read or write ${file}. Check the disk and the system log.`,
  ],
];

/** Translates errors that an operator can fix into STORE_ERROR. Returns other errors unchanged. */
export function storeError(file: string, thrown: unknown): unknown {
  if (thrown instanceof PlatformError) return thrown;
  const code = codeOf(thrown);
  const fault = code === undefined ? undefined : FAULTS.find(([codes]) => codes.test(code));
  if (!fault) return thrown;
  return new PlatformError('STORE_ERROR', fault[1](file), { details: { file, reason: code }, cause: thrown });
}

/** Returns true when another process holds the lock, so that a retry might succeed. */
export function isBusy(thrown: unknown): boolean {
  return /^SQLITE_(?:BUSY|LOCKED|PROTOCOL)/.test(codeOf(thrown) ?? '');
}

export function isUniqueViolation(thrown: unknown): boolean {
  return /^SQLITE_CONSTRAINT_(?:UNIQUE|PRIMARYKEY)$/.test(codeOf(thrown) ?? '');
}
