import { readFileSync } from 'node:fs';
import { codeOf } from '../../kit/errors/errors.ts';

export interface Owner {
  pid: number;
  label: string;
}

/** Returns the process that owns the lock. Returns undefined if the owner file is missing or its process has ended. */
export function readOwner(ownerFile: string): Owner | undefined {
  try {
    const owner = JSON.parse(readFileSync(ownerFile, 'utf8')) as Owner;
    return isAlive(owner.pid) ? owner : undefined;
  } catch {
    return undefined;
  }
}

/** Returns whether the process exists. A killed process leaves its owner file behind, although its lock is released. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}
