import { readFileSync } from 'node:fs';

/** Processes that the kernel has ended since it started, for want of memory; null where it does not tell. */
export function oomKills(): number | null {
  try {
    const count = /^oom_kill (\d+)$/m.exec(readFileSync('/proc/vmstat', 'utf8'))?.[1];
    return count === undefined ? null : Number(count);
  } catch {
    return null;
  }
}
