import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import type { Duplex, Readable } from 'node:stream';
import { systemClock } from '../../../kit/time/clock.ts';
import { MEMORY_FOLDERS } from '../../sandbox/bwrap.ts';
import type { Launch } from '../../sandbox/index.ts';
import { captureOutput } from './output-capture.ts';

/** Time limit for reading the remaining output of a process that has exited. */
const DRAIN_MS = 200;
/** Time limit for bwrap to exit after Node was killed. When the limit expires, bwrap is killed too. */
const REAP_MS = 1000;

export interface SpawnEvents {
  onLine(stream: 'stdout' | 'stderr', line: string): void;
  /** Callback that gets the size of each part of the output, with the text that no line contains. */
  onBytes?(bytes: number): void;
  /**
   * Callback that is called once, after the process has exited and its output was read. `error` is set if the process
   * could not be started.
   */
  onExit(code: number | null, signal: string | null, error?: Error): void;
}

export interface SpawnedRunner {
  /** Stream for protocol frames, on file descriptor 3 of the child process. */
  readonly channel: Duplex;
  /** Process id of Node, not of bwrap. Undefined until bwrap has reported the id. */
  readonly pid: number | undefined;
  /** In-memory folders of the process. Files in these folders count towards the memory limit of the process. */
  readonly memoryFolders: readonly string[];
  stderrTail(): string;
  /** Closes the channel, which makes the runner exit. */
  leave(): void;
  kill(): void;
}

export interface SpawnOptions {
  /**
   * Whether the process waits for a line on stdin, which it gets once its pid is known. Stdin ends without a line if the
   * process is killed before. bwrap can be killed before it has tied its child process to itself.
   */
  isGated?: boolean;
}

export function spawnRunner(
  launch: Launch,
  events: SpawnEvents,
  { isGated = false }: SpawnOptions = {},
): SpawnedRunner {
  const usesBwrap = launch.mode === 'bwrap';
  const child = spawn(launch.command, launch.args, {
    cwd: launch.cwd,
    env: launch.env,
    stdio: [isGated ? 'pipe' : 'ignore', 'pipe', 'pipe', 'pipe', ...(usesBwrap ? (['pipe'] as const) : [])],
  });
  child.stdin?.on('error', () => {});
  let pid: number | undefined;
  let isKilled = false;
  const learnPid = (found: number | undefined) => {
    pid = found;
    if (found === undefined) return;
    offerToOomKiller(found);
    if (isKilled) killPid(found);
    else child.stdin?.end('\n');
  };
  if (usesBwrap) readChildPid(child.stdio[4] as Readable, learnPid);
  else learnPid(child.pid);

  const onBytes = (bytes: number) => events.onBytes?.(bytes);
  captureOutput(child.stdout!, systemClock, (line) => events.onLine('stdout', line), onBytes);
  const stderr = captureOutput(child.stderr!, systemClock, (line) => events.onLine('stderr', line), onBytes);
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
      isKilled = true;
      child.stdin?.destroy();
      if (!usesBwrap) {
        child.kill('SIGKILL');
        return;
      }
      // Kills Node instead of bwrap, because killing bwrap could leave a zombie, or a child process that bwrap has not
      // reported yet. Node's pid cannot be reused before bwrap has reaped Node.
      if (pid !== undefined) killPid(pid);
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
  // Child processes of the plugin can keep the pipes open. They must not delay the exit event.
  child.on('exit', (code, signal) => systemClock.after(DRAIN_MS, () => finish(code, signal)));
  return () => isGone || child.exitCode !== null || child.signalCode !== null;
}

/** Returns the signal that ended Node. bwrap reports the signal as exit code 128 plus the signal's number. */
function signalOf(code: number): string | undefined {
  return Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0];
}

/** Raises the OOM score of a plugin process. When memory runs out, the kernel then kills plugins before services. */
function offerToOomKiller(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '500');
  } catch {
    // This error is expected if the system has no `/proc` or the process has already exited.
  }
}

function killPid(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // This error is expected if the process has already exited.
  }
}

/**
 * Reads the pid of bwrap's child process from the first JSON document in bwrap's status output. bwrap writes this
 * document before plugin code runs, so plugin code cannot forge the pid.
 */
function readChildPid(status: Readable, found: (pid: number | undefined) => void): void {
  let text = '';
  status.setEncoding('utf8');
  status.on('error', () => {});
  status.on('data', function read(piece: string) {
    text += piece;
    if (!text.includes('}') && text.length < 4096) return;
    status.off('data', read);
    // Keeps the pipe open, because bwrap later writes the exit status to the pipe. A closed pipe would kill bwrap.
    status.resume();
    const pid = Number(/"child-pid":\s*(\d+)/.exec(text)?.[1]);
    found(Number.isInteger(pid) && pid > 1 ? pid : undefined);
  });
}
