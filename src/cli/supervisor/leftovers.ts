import { setTimeout as sleep } from 'node:timers/promises';
import { type PlatformConfig, SERVICE_NAMES } from '../../contracts/index.ts';
import { STOP_DEADLINES } from '../../kit/stop-deadlines.ts';
import type { DataFolder } from './data-folder.ts';
import { endByForce, isRunning } from './process-identity.ts';
import { readRunFile } from './run-file.ts';

const POLL_MS = 25;

/** Waits until the daemons of a killed supervisor have stopped by themselves, and ends those that do not: never two sets on one folder. */
export async function awaitLeftovers(
  folder: DataFolder,
  config: PlatformConfig,
  onWait: (reason: string) => void,
): Promise<void> {
  const children = readRunFile(folder)?.children ?? [];
  const left = () => children.filter(isRunning);
  if (left().length === 0) return;
  onWait(`${left().length} daemons of a supervisor that was killed are finishing`);
  const patienceMs = Math.max(...SERVICE_NAMES.map((name) => config[name].drainMs)) + STOP_DEADLINES.forceMs;
  for (let waited = 0; waited < patienceMs && left().length > 0; waited += POLL_MS) await sleep(POLL_MS);
  left().forEach(endByForce);
  while (left().length > 0) await sleep(POLL_MS);
}
