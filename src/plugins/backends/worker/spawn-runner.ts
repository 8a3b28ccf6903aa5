import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import type { Duplex, Readable } from 'node:stream';
import { systemClock } from '../../../kit/time/clock.ts';
import { MEMORY_FOLDERS } from '../../sandbox/bwrap.ts';
import type { Launch } from '../../sandbox/index.ts';
import { captureOutput } from './output-capture.ts';

/** Time limit for reading the last output of a process that has exited. */
const DRAIN_MS = 200;
/** Time limit for bwrap to exit after Node was killed. After this time, bwrap is killed too. */
const REAP_MS = 1000;

export interface SpawnEvents {
  onLine(stream: 'stdout' | 'stderr', line: string): void;
  /** Called once, after the process has exited and its output was read. `error` is set if it could not be started. */
  onExit(code: number | null, signal: string | null, error?: Error): void;
}

export interface SpawnedRunner {
  /** The frame channel: file descriptor 3 of the child. */
  readonly channel: Duplex;
  /** Process id of Node, not of bwrap. Undefined until bwrap has reported it. */
  readonly pid: number | undefined;
  /** In-memory folders of the process. Their files count towards its memory limit. */
  readonly memoryFolders: readonly string[];
  stderrTail(): string;
  /** Closes the channel, which makes the runner exit. */
  leave(): void;
  kill(): void;
}

export function spawnRunner(launch: Launch, events: SpawnEvents): SpawnedRunner {
  const usesBwrap = launch.mode === 'bwrap';
  const child = spawn(launch.command, launch.args, {
    cwd: launch.cwd,
    env: launch.env,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe', ...(usesBwrap ? (['pipe'] as const) : [])],
  });
  let pid: number | undefined;
  const learnPid = (found: number | undefined) => {
    pid = found;
    if (found !== undefined) offerToOomKiller(found);
  };
  if (usesBwrap) readChildPid(child.stdio[4] as Readable, learnPid);
  else learnPid(child.pid);

  captureOutput(child.stdout!, systemClock, (line) => events.onLine('stdout', line));
  const stderr = captureOutput(child.stderr!, systemClock, (line) => events.onLine('stderr', line));
  const isGone = watchExit(child, usesBwrap, events);
  return {
    channel: child.stdio[3] as Duplex,
    get pid() {
      return pid;
    },
    memoryFolders: usesBwrap ? MEMORY_FOLDERS : [],
    stderrTail: stderr.tail,
    leave: () => void (child.stdio[3] as Duplex).end(),
    kill() {
      if (isGone()) return;
      if (!usesBwrap || pid === undefined) {
        child.kill('SIGKILL');
        return;
      }
      // Killing bwrap could leave a zombie, so Node is killed. Its pid cannot be reused before bwrap has reaped it.
      killPid(pid);
      systemClock.after(REAP_MS, () => {
        if (!isGone()) child.kill('SIGKILL');
      });
    },
  };
}

function watchExit(child: ChildProcess, usesBwrap: boolean, { onExit }: SpawnEvents): () => boolean {
  let isGone = false;
  function finish(code: number | null, signal: string | null, error?: Error): void {
    if (isGone) return;
    isGone = true;
    for (const stream of child.stdio) stream?.destroy();
    const nodeSignal = usesBwrap && code !== null ? signalOf(code) : undefined;
    if (nodeSignal) onExit(null, nodeSignal, error);
    else onExit(code, signal, error);
  }
  child.on('error', (error) => {
    if (child.pid === undefined) finish(null, null, error);
  });
  child.on('close', finish);
  // Processes started by the plugin may keep the pipes open. They must not delay the reported exit.
  child.on('exit', (code, signal) => systemClock.after(DRAIN_MS, () => finish(code, signal)));
  return () => isGone || child.exitCode !== null || child.signalCode !== null;
}

/** Returns the signal that ended Node, which bwrap reports as 128 plus the signal's number. */
function signalOf(code: number): string | undefined {
  return Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0];
}

/** Makes the kernel kill plugins before services when the machine runs out of memory. */
function offerToOomKiller(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '500');
  } catch {
    // The system has no `/proc`, or the process has already exited.
  }
}

function killPid(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // The process has already exited.
  }
}

/**
 * Reads the pid of bwrap's child from the first JSON document only. bwrap writes it before plugin code runs, so plugin
 * code cannot make the platform kill another process.
 */
function readChildPid(status: Readable, found: (pid: number | undefined) => void): void {
  let text = '';
  status.setEncoding('utf8');
  status.on('error', () => {});
  status.on('data', function read(piece: string) {
    text += piece;
    if (!text.includes('}') && text.length < 4096) return;
    status.off('data', read);
    // The pipe stays open, because bwrap writes the exit status there and a closed pipe would kill it.
    status.resume();
    const pid = Number(/"child-pid":\s*(\d+)/.exec(text)?.[1]);
    found(Number.isInteger(pid) && pid > 1 ? pid : undefined);
  });
}
