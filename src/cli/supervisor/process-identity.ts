import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { codeOf } from '../../kit/errors.ts';

/** A process beyond doubt: its id may be given to another program later, its start time is not. */
export interface ProcessIdentity {
  pid: number;
  /** Clock ticks since boot on Linux, a date elsewhere; null where neither can be had. */
  startedAt: string | null;
}

export function identify(pid: number): ProcessIdentity {
  return { pid, startedAt: startTimeOf(pid) };
}

export function isRunning({ pid, startedAt }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (codeOf(error) !== 'EPERM') return false;
  }
  return startedAt === null || startTimeOf(pid) === startedAt;
}

function startTimeOf(pid: number): string | null {
  try {
    if (process.platform === 'linux') {
      const [state, ...fields] = afterName(readFileSync(`/proc/${pid}/stat`, 'utf8'));
      // A zombie runs no more; its parent has merely not looked yet.
      return state === 'Z' ? null : (fields[18] ?? null);
    }
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || null;
  } catch {
    return null;
  }
}

/** The fields of /proc/<pid>/stat behind the name, which may itself hold blanks and parentheses. */
function afterName(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(') ') + 2).split(' ');
}
