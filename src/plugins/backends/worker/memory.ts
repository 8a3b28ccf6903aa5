import { readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { systemClock } from '../../../kit/time/clock.ts';

const WATCH_MS = 50;
/** Poll interval while no call runs. Code that a handler left running can still allocate memory. */
const IDLE_WATCH_MS = 200;
/** A look is followed by a pause of this many times its duration, which grows with the number of threads. */
const PAUSE_FACTOR = 4;
/** Idle processes that use more than this fraction of their memory limit are replaced. */
const RETIRE_SHARE = 0.8;

export interface MemoryWatch {
  /**
   * Starts to poll the memory use at short intervals. Once the process is idle, polling continues at longer intervals.
   * Must be called when a call starts.
   */
  start(): void;
  stop(): void;
}

export interface MemoryWatchDeps {
  limitMb: number;
  /** Folders of the process that are stored in memory. Their files count towards the memory limit of the process. */
  folders: readonly string[];
  /** Returns the pid of the process, or undefined once the process has ended or is ending. */
  pid(): number | undefined;
  isBusy(): boolean;
  /** Whether the process may have child processes, whose memory then counts too. */
  hasChildren: boolean;
  onOver(usedMb: number): void;
  /** Callback that is called when the process has more child processes than are counted. */
  onManyChildren(max: number): void;
  /** Callback that is called when the process is idle and close to its memory limit. */
  onFull(): void;
}

/** Child processes that are counted. A process with more of them is ended, because each takes memory. */
const MAX_CHILDREN = 64;

/** Polls the memory of a process. V8's heap limit covers neither buffers nor files in memory. */
export function createMemoryWatch({
  limitMb,
  folders,
  pid,
  isBusy,
  hasChildren,
  onOver,
  onManyChildren,
  onFull,
}: MemoryWatchDeps): MemoryWatch {
  let stop: (() => void) | undefined;
  let isFrequent = false;

  function check(): void {
    stop = undefined;
    const startedAt = systemClock.monotonic();
    const id = pid();
    const residentOf = hasChildren ? residentWithChildrenMb : residentMb;
    const resident = id === undefined ? undefined : residentOf(id);
    const used = resident === undefined ? undefined : resident + filesMb(id!, folders);
    if (used === Number.POSITIVE_INFINITY) onManyChildren(MAX_CHILDREN);
    else if (used !== undefined && used > limitMb) onOver(used);
    else if (isBusy()) next(WATCH_MS, startedAt);
    else if (used !== undefined && used > limitMb * RETIRE_SHARE) onFull();
    else if (used !== undefined) next(IDLE_WATCH_MS, startedAt);
  }
  function next(ms: number, startedAt: number): void {
    isFrequent = ms === WATCH_MS;
    stop = systemClock.after(Math.max(ms, (systemClock.monotonic() - startedAt) * PAUSE_FACTOR), check);
  }
  return {
    start() {
      if (stop && isFrequent) return;
      stop?.();
      next(WATCH_MS, systemClock.monotonic());
    },
    stop: () => stop?.(),
  };
}

/**
 * Returns the resident memory of a process in MB. Returns undefined if the process has ended or the system has no
 * `/proc`.
 */
function residentMb(pid: number): number | undefined {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kilobytes === undefined ? undefined : Number(kilobytes) / 1024;
  } catch {
    return undefined;
  }
}

/**
 * Returns the resident memory of a process and its descendants in MB. Shared pages count once for each process. More
 * than MAX_CHILDREN descendants count as infinite memory.
 */
function residentWithChildrenMb(pid: number): number | undefined {
  const own = residentMb(pid);
  if (own === undefined) return undefined;
  let total = own;
  const pids = childrenOf(pid);
  for (let at = 0; at < pids.length; at++) {
    if (at >= MAX_CHILDREN) return Number.POSITIVE_INFINITY;
    total += residentMb(pids[at]!) ?? 0;
    pids.push(...childrenOf(pids[at]!));
  }
  return total;
}

/** Returns the ids of the processes that the threads of a process have started. */
function childrenOf(pid: number): number[] {
  let threads: string[];
  try {
    threads = readdirSync(`/proc/${pid}/task`);
  } catch {
    // The process has ended.
    return [];
  }
  return threads.flatMap((thread) => childrenOfThread(pid, thread));
}

function childrenOfThread(pid: number, thread: string): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8');
    return text.split(' ').filter(Boolean).map(Number);
  } catch {
    // The thread has ended, or this kernel does not list children.
    return [];
  }
}

/** Returns the space in MB used in a process's tmpfs folders, which resident memory does not include. */
function filesMb(pid: number, folders: readonly string[]): number {
  let bytes = 0;
  for (const folder of folders) {
    try {
      const path = `/proc/${pid}/root${folder}`;
      // Until bwrap has made the sandbox, this is the folder of the machine.
      if (statSync(path).dev === deviceOf(folder)) continue;
      const { blocks, bfree, bsize } = statfsSync(path);
      bytes += (blocks - bfree) * bsize;
    } catch {
      // The process has ended, or its root is unreadable. In both cases, the folder's own size limit still applies.
    }
  }
  return bytes / (1024 * 1024);
}

function deviceOf(folder: string): number | undefined {
  return statSync(folder, { throwIfNoEntry: false })?.dev;
}
