import { readFileSync } from 'node:fs';
import { systemClock } from '../../../kit/clock.ts';

const WATCH_MS = 50;
/** An idle process this full is replaced before its next call. */
const RETIRE_SHARE = 0.8;

export interface MemoryWatch {
  /** Looks on until the process is idle. */
  start(): void;
  stop(): void;
}

export interface MemoryWatchDeps {
  limitMb: number;
  /** Undefined once the process is gone, or is to go. */
  pid(): number | undefined;
  isBusy(): boolean;
  onOver(usedMb: number): void;
  /** It is idle, and nearly full. */
  onFull(): void;
}

/** Watches the resident memory of one process while calls run: V8's own limit does not bound buffers. */
export function createMemoryWatch({ limitMb, pid, isBusy, onOver, onFull }: MemoryWatchDeps): MemoryWatch {
  let stop: (() => void) | undefined;

  function look(): void {
    stop = undefined;
    const id = pid();
    const used = id === undefined ? undefined : residentMb(id);
    if (used !== undefined && used > limitMb) onOver(used);
    else if (isBusy()) start();
    else if (used !== undefined && used > limitMb * RETIRE_SHARE) onFull();
  }
  function start(): void {
    stop ??= systemClock.after(WATCH_MS, look);
  }
  return { start, stop: () => stop?.() };
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
