import { readFileSync } from 'node:fs';

/** Number of processes killed by the kernel for lack of memory since boot; null if unavailable. */
export function oomKills(): number | null {
  try {
    const count = /^oom_kill (\d+)$/m.exec(readFileSync('/proc/vmstat', 'utf8'))?.[1];
    return count === undefined ? null : Number(count);
  } catch {
    return null;
  }
}
