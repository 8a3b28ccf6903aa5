import { readFileSync, rmSync } from 'node:fs';
import type { ServiceName } from '../contracts/index.ts';
import { type DataFolder, writePrivateFile } from './data-folder.ts';
import { isRunning, type ProcessIdentity } from './process-identity.ts';

/** Written by the supervisor: its control socket, and the children to wait for if it is killed. */
export interface RunFile {
  supervisor: ProcessIdentity;
  /** Path of the control socket. */
  socket: string;
  children: Array<ProcessIdentity & { name: ServiceName; url: string | null }>;
}

export function writeRunFile(folder: DataFolder, content: RunFile): void {
  writePrivateFile(folder.runFile, `${JSON.stringify(content)}\n`);
}

/** Returns null if the file does not exist or is unreadable. */
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

/** Returns the URL of a running service, or null if the service is not listening. */
export function runningUrl(folder: DataFolder, name: ServiceName): string | null {
  const run = readRunFile(folder);
  if (!run || !isRunning(run.supervisor)) return null;
  const child = run.children.find((each) => each.name === name);
  return child && isRunning(child) ? child.url : null;
}
