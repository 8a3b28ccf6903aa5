import { readFileSync } from 'node:fs';

/** Resident megabytes of a process; undefined when it is gone, or where there is no `/proc` (macOS). */
export function residentMb(pid: number): number | undefined {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kilobytes === undefined ? undefined : Number(kilobytes) / 1024;
  } catch {
    return undefined;
  }
}
