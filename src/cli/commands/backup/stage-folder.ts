import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { DataFolder } from '../../../supervisor/data-folder.ts';
import { identify } from '../../../supervisor/process-identity.ts';

const STAGE_PREFIX = 'backup-';

/** Creates a temporary folder for a backup in `run/`, and removes the temporary folders of killed backups. */
export function makeStage({ run }: DataFolder): string {
  mkdirSync(run, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(run).filter(isOrphanedStage))
    rmSync(join(run, name), { recursive: true, force: true });
  return mkdtempSync(join(run, `${STAGE_PREFIX}${process.pid}-`));
}

/** Returns true if a folder in `run/` belongs to a backup whose process has ended. */
export function isOrphanedStage(name: string): boolean {
  const pid = Number(/^backup-(\d+)-/.exec(name)?.[1]);
  return pid > 0 && identify(pid).startedAt === null;
}
