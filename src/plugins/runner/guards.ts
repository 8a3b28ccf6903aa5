import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import process from 'node:process';
import { RunnerFailure } from './failure.ts';

/** Functions of `process` that reach other processes or the host and that no permission flag covers. */
const DENIED_ON_PROCESS = [
  '_debugProcess',
  '_debugEnd',
  '_startProfilerIdleNotifier',
  '_stopProfilerIdleNotifier',
  'binding',
  '_linkedBinding',
  'dlopen',
  'execve',
  'initgroups',
  'setegid',
  'seteuid',
  'setgid',
  'setgroups',
  'setuid',
] as const;

/** What a crash of V8 itself would exit with; `abort` would leave a core file with the process's memory. */
const ABORT_EXIT_CODE = 134;

/**
 * Takes away, before plugin code loads, what Node's permission model leaves open: signals to other
 * processes (SIGUSR1 would open a debugger in the daemon), priorities, native code. Plugin code may still
 * end its own process. A seat belt: the kernel sandbox is the wall. @spec docs/security.md
 */
export function installGuards(): void {
  guardKill();
  for (const name of DENIED_ON_PROCESS) if (name in process) lock(process, name, refusal(`process.${name}`));
  lock(process, 'abort', () => process.exit(ABORT_EXIT_CODE));
  lock(os, 'setPriority', refusal('os.setPriority'));
  syncBuiltinESMExports();
}

function guardKill(): void {
  const self = process.pid;
  const raw = process as unknown as Record<'kill' | '_kill', (pid: number, signal?: unknown) => unknown>;
  for (const name of ['kill', '_kill'] as const) {
    const original = raw[name].bind(process);
    lock(process, name, (pid: number, signal?: unknown) => {
      // 0 and negative ids mean process groups, the daemon's among them.
      if (pid !== self) throw refused(`process.kill of any other process`);
      return original(pid, signal);
    });
  }
}

function refusal(name: string): () => never {
  return () => {
    throw refused(name);
  };
}

function refused(name: string): RunnerFailure {
  return new RunnerFailure('PERMISSION_DENIED', `${name} is not available to plugins.`, { function: name });
}

function lock(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, writable: false, configurable: false, enumerable: true });
}
