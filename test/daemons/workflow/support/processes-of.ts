import { readdirSync, readFileSync } from 'node:fs';
import { isAlive } from '../../../support/is-alive.ts';

/** Returns the ids of the processes whose command line contains a text. */
export function processesOf(text: string): number[] {
  const wanted = text.replaceAll(' ', '\0');
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => isAlive(pid) && commandOf(pid).startsWith(wanted));
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
