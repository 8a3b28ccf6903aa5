import { identify } from '../../src/supervisor/process-identity.ts';

/** Whether it runs: an ended process whose parent has not looked yet does not count. */
export function isAlive(pid: number): boolean {
  return identify(pid).startedAt !== null;
}
