import { readFileSync } from 'node:fs';
import { codeOf } from '../kit/errors/errors.ts';

/** Identifies a process by pid and start time, because pids are reused. */
export interface ProcessIdentity {
  pid: number;
  /** Start time: clock ticks since boot on Linux, a date on other systems. Null if the process has already exited. */
  startedAt: string | null;
}

export function identify(pid: number): ProcessIdentity {
  return { pid, startedAt: startTimeOf(pid) };
}

export function isRunning({ pid, startedAt }: ProcessIdentity): boolean {
  return startedAt !== null && startTimeOf(pid) === startedAt;
}

/** Kills the process, unless its pid now belongs to another process. */
export function killProcess(identity: ProcessIdentity): void {
  if (!isRunning(identity)) return;
  try {
    process.kill(identity.pid, 'SIGKILL');
  } catch (error) {
    // The error code ESRCH means that the process has already exited.
    if (codeOf(error) !== 'ESRCH') throw error;
  }
}

function startTimeOf(pid: number): string | null {
  try {
    if (process.platform === 'linux') {
      const [state, ...fields] = afterName(readFileSync(`/proc/${pid}/stat`, 'utf8'));
      // State Z is a zombie: the process has exited, but its parent has not collected the exit code yet.
      return state === 'Z' ? null : (fields[18] ?? null);
    }
    // The module is loaded on demand, because reading the start time on Linux needs no child process.
    const { execFileSync } = process.getBuiltinModule('node:child_process');
    // A fixed locale and time zone make the dates of two calls comparable.
    const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC' };
    const output = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8', env });
    return output.trim() || null;
  } catch {
    return null;
  }
}

/** Returns the fields of /proc/<pid>/stat after the process name, which can contain spaces and parentheses. */
function afterName(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(') ') + 2).split(' ');
}
