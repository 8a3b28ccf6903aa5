import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DataFolder } from '../../supervisor/data-folder.ts';
import { identify } from '../../supervisor/process-identity.ts';

const PREFIX = 'backup-';

/** A folder for one backup, on the data folder's own file system; takes away what killed ones left. */
export function makeStage({ run }: DataFolder): string {
  mkdirSync(run, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(run).filter(isLeftStage))
    rmSync(join(run, name), { recursive: true, force: true });
  return mkdtempSync(join(run, `${PREFIX}${process.pid}-`));
}

/** Whether a folder of `run/` is of a backup whose process has ended. */
export function isLeftStage(name: string): boolean {
  const pid = Number(/^backup-(\d+)-/.exec(name)?.[1]);
  return pid > 0 && identify(pid).startedAt === null;
}
