import { setTimeout as sleep } from 'node:timers/promises';
import { type PlatformConfig, SERVICE_NAMES } from '../contracts/index.ts';
import { STOP_DEADLINES } from '../kit/time/stop-deadlines.ts';
import type { DataFolder } from './data-folder.ts';
import { isRunning, killProcess } from './process-identity.ts';
import { readRunFile } from './run-file.ts';

const POLL_MS = 25;

/**
 * Waits until the services of a killed supervisor have exited, and kills them after a deadline. Two sets of services
 * must never use the same data folder.
 */
export async function awaitOrphans(
  folder: DataFolder,
  config: PlatformConfig,
  onWait: (reason: string) => void,
): Promise<void> {
  const children = readRunFile(folder)?.children ?? [];
  const running = () => children.filter(isRunning);
  if (running().length === 0) return;
  onWait(`${running().length} services of a killed supervisor are stopping`);
  const deadlineMs = Math.max(...SERVICE_NAMES.map((name) => config[name].drainMs)) + STOP_DEADLINES.forceMs;
  for (let waited = 0; waited < deadlineMs && running().length > 0; waited += POLL_MS) await sleep(POLL_MS);
  running().forEach(killProcess);
  while (running().length > 0) await sleep(POLL_MS);
}
