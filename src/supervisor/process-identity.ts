import { readFileSync } from 'node:fs';
import { codeOf } from '../kit/errors/errors.ts';

/** Identifies a process by pid and start time, because pids are reused. */
export interface ProcessIdentity {
  pid: number;
  /** Clock ticks since boot on Linux, a date elsewhere; null if the process had already ended. */
  startedAt: string | null;
}

export function identify(pid: number): ProcessIdentity {
  return { pid, startedAt: startTimeOf(pid) };
}

export function isRunning({ pid, startedAt }: ProcessIdentity): boolean {
  return startedAt !== null && startTimeOf(pid) === startedAt;
}

/** Kills the process, unless its pid now belongs to another one. */
export function killProcess(identity: ProcessIdentity): void {
  if (!isRunning(identity)) return;
  try {
    process.kill(identity.pid, 'SIGKILL');
  } catch (error) {
    // The process has ended meanwhile.
    if (codeOf(error) !== 'ESRCH') throw error;
  }
}

function startTimeOf(pid: number): string | null {
  try {
    if (process.platform === 'linux') {
      const [state, ...fields] = afterName(readFileSync(`/proc/${pid}/stat`, 'utf8'));
      // A zombie has ended but was not reaped yet.
      return state === 'Z' ? null : (fields[18] ?? null);
    }
    // Loaded on demand, because Linux reads /proc instead.
    const { execFileSync } = process.getBuiltinModule('node:child_process');
    // Fixed locale and time zone make the date comparable.
    const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC' };
    const output = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', env });
    return output.trim() || null;
  } catch {
    return null;
  }
}

/** Fields of /proc/<pid>/stat after the process name, which may contain spaces and parentheses. */
function afterName(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(') ') + 2).split(' ');
}
