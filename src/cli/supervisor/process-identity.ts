import { readFileSync } from 'node:fs';
import { codeOf } from '../../kit/errors.ts';

/** A process beyond doubt: its id may be given to another program later, its start time is not. */
export interface ProcessIdentity {
  pid: number;
  /** Clock ticks since boot on Linux, a date elsewhere; null for one that had ended when it was looked at. */
  startedAt: string | null;
}

export function identify(pid: number): ProcessIdentity {
  return { pid, startedAt: startTimeOf(pid) };
}

export function isRunning({ pid, startedAt }: ProcessIdentity): boolean {
  return startedAt !== null && startTimeOf(pid) === startedAt;
}

/** Ends it by force; another program that has its id by now is left alone. */
export function endByForce(identity: ProcessIdentity): void {
  if (!isRunning(identity)) return;
  try {
    process.kill(identity.pid, 'SIGKILL');
  } catch (error) {
    // It ended while we looked.
    if (codeOf(error) !== 'ESRCH') throw error;
  }
}

function startTimeOf(pid: number): string | null {
  try {
    if (process.platform === 'linux') {
      const [state, ...fields] = afterName(readFileSync(`/proc/${pid}/stat`, 'utf8'));
      // A zombie runs no more; its parent has merely not looked yet.
      return state === 'Z' ? null : (fields[18] ?? null);
    }
    // Loaded by need: every command asks for the supervisor, and on Linux the file above tells.
    const { execFileSync } = process.getBuiltinModule('node:child_process');
    // The same date for whoever asks, in whatever language and time zone.
    const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC' };
    const told = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', env });
    return told.trim() || null;
  } catch {
    return null;
  }
}

/** The fields of /proc/<pid>/stat behind the name, which may itself hold blanks and parentheses. */
function afterName(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(') ') + 2).split(' ');
}
