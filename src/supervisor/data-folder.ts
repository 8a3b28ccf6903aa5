import {
  chmodSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { messageOf, PlatformError } from '../kit/errors/errors.ts';
import { draftPathOf } from '../kit/files/draft-path.ts';

/** Paths of the files and folders in `.svc/`. @spec docs/architecture.md "What is on disk" */
export interface DataFolder {
  root: string;
  keys: string;
  credentials: string;
  run: string;
  logs: string;
  /** Path of the run file. The file contains the ids of the running processes and the path of the control socket. */
  runFile: string;
  /** File that the supervisor locks while it runs. */
  ownerLock: string;
  /** Folder of the V8 compile cache of the services. The cache saves a fifth of the CPU time of a start. */
  compileCache: string;
  /** File that caches the operator's access token between commands. */
  tokenCache: string;
}

export function dataFolder(root: string): DataFolder {
  const run = join(root, 'run');
  return {
    root,
    keys: join(root, 'keys.json'),
    credentials: join(root, 'credentials.json'),
    run,
    logs: join(root, 'logs'),
    runFile: join(run, 'supervisor.json'),
    ownerLock: join(run, 'supervisor'),
    compileCache: join(run, 'compiled'),
    tokenCache: join(run, 'token.json'),
  };
}

/** Creates the folders with access for their owner only. Throws STORE_ERROR if a folder is not usable. */
export function ensureDataFolder({ root, run, logs, compileCache }: DataFolder): void {
  for (const folder of [root, run, logs, compileCache]) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      if ((statSync(folder).mode & 0o077) !== 0) chmodSync(folder, 0o700);
    } catch (error) {
      throw new PlatformError('STORE_ERROR', `Cannot use the data folder ${folder}: ${messageOf(error)}.`, {
        details: { folder, hint: 'Make it writable for this user, or set SVC_HOME to another folder.' },
        cause: error,
      });
    }
  }
}

/** Replaces a file atomically. The new file is accessible only by its owner. */
export function writePrivateFile(file: string, text: string): void {
  writeWholeFile(file, text, 0o600);
}

/**
 * Replaces a file atomically, so that readers see either the old or the new text, even after a crash. Throws
 * STORE_ERROR if writing fails.
 */
export function writeWholeFile(file: string, text: string, mode: number): void {
  const draft = draftPathOf(file);
  try {
    const fd = openSync(draft, 'wx', mode);
    try {
      writeSync(fd, text);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(draft, file);
    syncFolder(dirname(file));
  } catch (error) {
    rmSync(draft, { force: true });
    throw new PlatformError('STORE_ERROR', `Cannot write ${file}: ${messageOf(error)}.`, {
      details: { file },
      cause: error,
    });
  }
}

/**
 * Syncs a folder, so that a renamed file survives a power failure. Does nothing on Windows, which cannot open folders.
 */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const fd = openSync(folder, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
