import { readFileSync, rmSync } from 'node:fs';
import type { ServiceName } from '../contracts/index.ts';
import type { ServiceStatus } from './control-protocol.ts';
import { type DataFolder, writePrivateFile } from './data-folder.ts';
import { isRunning, type ProcessIdentity } from './process-identity.ts';

/**
 * Content of `run/supervisor.json`. Clients need the socket path. After a supervisor was killed, the next supervisor
 * needs the list of services that are still running.
 */
export interface RunFile {
  supervisor: ProcessIdentity;
  socket: string;
  children: Array<ProcessIdentity & { name: ServiceName; url: string | null }>;
  /** State of the services, which the gateway shows to administrators. */
  services: Array<Pick<ServiceStatus, 'name' | 'restarts' | 'lastExit'> & { isRunning: boolean }>;
}

export function writeRunFile(folder: DataFolder, content: RunFile): void {
  writePrivateFile(folder.runFile, `${JSON.stringify(content)}\n`);
}

/** Returns the content of the run file, or null if the file is missing or is not valid JSON. */
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
