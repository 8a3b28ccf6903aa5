import { readFileSync } from 'node:fs';

/**
 * Returns the number of processes killed by the kernel's out-of-memory killer since boot. Returns null if the number is
 * not available.
 */
export function oomKills(): number | null {
  try {
    const count = /^oom_kill (\d+)$/m.exec(readFileSync('/proc/vmstat', 'utf8'))?.[1];
    return count === undefined ? null : Number(count);
  } catch {
    return null;
  }
}
