import { readFileSync, statfsSync } from 'node:fs';
import { systemClock } from '../../../kit/clock.ts';

const WATCH_MS = 50;
/** Between calls: what a handler left behind may go on allocating. */
const IDLE_WATCH_MS = 200;
/** An idle process this full is replaced before its next call. */
const RETIRE_SHARE = 0.8;

export interface MemoryWatch {
  /** A call begins: looks closely until the process is idle, and less often from then on. */
  start(): void;
  stop(): void;
}

export interface MemoryWatchDeps {
  limitMb: number;
  /** Folders of the process that are in memory; files there count as memory. */
  folders: readonly string[];
  /** Undefined once the process is gone, or is to go. */
  pid(): number | undefined;
  isBusy(): boolean;
  onOver(usedMb: number): void;
  /** It is idle, and nearly full. */
  onFull(): void;
}

/**
 * Watches the resident memory of one process, and its files in memory, from its first call on: V8's own limit bounds
 * neither buffers nor files.
 */
export function createMemoryWatch({
  limitMb,
  folders,
  pid,
  isBusy,
  onOver,
  onFull,
}: MemoryWatchDeps): MemoryWatch {
  let stop: (() => void) | undefined;
  let isClose = false;

  function look(): void {
    stop = undefined;
    const id = pid();
    const resident = id === undefined ? undefined : residentMb(id);
    const used = resident === undefined ? undefined : resident + filesMb(id!, folders);
    if (used !== undefined && used > limitMb) onOver(used);
    else if (isBusy()) next(WATCH_MS);
    else if (used !== undefined && used > limitMb * RETIRE_SHARE) onFull();
    else if (used !== undefined) next(IDLE_WATCH_MS);
  }
  function next(ms: number): void {
    isClose = ms === WATCH_MS;
    stop = systemClock.after(ms, look);
  }
  return {
    start() {
      if (stop && isClose) return;
      stop?.();
      next(WATCH_MS);
    },
    stop: () => stop?.(),
  };
}

/** Resident megabytes of a process; undefined when it is gone, or where there is no `/proc` (macOS). */
function residentMb(pid: number): number | undefined {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kilobytes === undefined ? undefined : Number(kilobytes) / 1024;
  } catch {
    return undefined;
  }
}

/** Megabytes of the files in a process's own folders, which resident memory does not show. */
function filesMb(pid: number, folders: readonly string[]): number {
  let bytes = 0;
  for (const folder of folders) {
    try {
      const { blocks, bfree, bsize } = statfsSync(`/proc/${pid}/root${folder}`);
      bytes += (blocks - bfree) * bsize;
    } catch {
      // The process is gone, or its root is unreadable: the folder's own size still limits it.
    }
  }
  return bytes / (1024 * 1024);
}
