import { readFileSync, rmSync } from 'node:fs';
import type { ServiceName } from '../../contracts/index.ts';
import { type DataFolder, writePrivateFile } from './data-folder.ts';
import { isRunning, type ProcessIdentity } from './process-identity.ts';

/** What the supervisor writes of itself: how to reach it, and whom to wait for should it be killed. */
export interface RunFile {
  supervisor: ProcessIdentity;
  /** The control socket. */
  socket: string;
  children: Array<ProcessIdentity & { name: ServiceName; url: string | null }>;
}

export function writeRunFile(folder: DataFolder, content: RunFile): void {
  writePrivateFile(folder.runFile, `${JSON.stringify(content)}\n`);
}

/** Null when there is none, or none that can be read: then nothing runs that we know of. */
export function readRunFile(folder: DataFolder): RunFile | null {
  try {
    return JSON.parse(readFileSync(folder.runFile, 'utf8')) as RunFile;
  } catch {
    return null;
  }
}

export function removeRunFile(folder: DataFolder): void {
  rmSync(folder.runFile, { force: true });
}

/** Where a service of the platform that runs here listens; null when it does not just now. */
export function runningUrl(folder: DataFolder, name: ServiceName): string | null {
  const run = readRunFile(folder);
  if (!run || !isRunning(run.supervisor)) return null;
  const child = run.children.find((each) => each.name === name);
  return child && isRunning(child) ? child.url : null;
}
