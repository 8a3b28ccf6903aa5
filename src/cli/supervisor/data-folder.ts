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
import { join } from 'node:path';
import { draftPathOf } from '../../kit/draft-path.ts';
import { messageOf, PlatformError } from '../../kit/errors.ts';

/** Where things lie in `.svc/`. @spec docs/architecture.md "What is on disk" */
export interface DataFolder {
  root: string;
  keys: string;
  credentials: string;
  run: string;
  logs: string;
  /** What the running supervisor says of itself. */
  runFile: string;
  /** Made exclusive by the supervisor for as long as it lives. */
  ownerLock: string;
  /** V8's compiled code of the daemons: a fifth less processor time at each start but the first. */
  compileCache: string;
  /** The operator's access token, kept between commands. */
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

/** Creates the folders, or narrows them to their owner. Throws STORE_ERROR where that cannot be. */
export function ensureDataFolder({ root, run, logs, compileCache }: DataFolder): void {
  for (const folder of [root, run, logs, compileCache]) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      if ((statSync(folder).mode & 0o077) !== 0) chmodSync(folder, 0o700);
    } catch (error) {
      throw new PlatformError(
        'STORE_ERROR',
        `The data folder ${folder} cannot be used: ${messageOf(error)}.`,
        {
          details: { folder, hint: 'Make it writable for this user, or point SVC_HOME at another folder.' },
          cause: error,
        },
      );
    }
  }
}

/** As `writeWholeFile`, readable by its owner alone. */
export function writePrivateFile(file: string, text: string): void {
  writeWholeFile(file, text, 0o600);
}

/** Replaces a file as a whole: a reader sees the old text or the new, after a crash too. Throws STORE_ERROR. */
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
  } catch (error) {
    rmSync(draft, { force: true });
    throw new PlatformError('STORE_ERROR', `${file} cannot be written: ${messageOf(error)}.`, {
      details: { file },
      cause: error,
    });
  }
}
