import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { messageOf } from '../kit/errors/errors.ts';
import { type CrashLoop, crashLoopFile } from '../kit/files/crash-loop-files.ts';
import { replacePrivateFile } from '../kit/files/replace-file.ts';
import type { Logger } from '../kit/telemetry/logger.ts';
import type { Clock } from '../kit/time/clock.ts';
import type { SupervisorEvent } from './control-protocol.ts';

/** Beyond this number, no gateway has read the files for days. Further crash loops of the same services add nothing. */
const MAX_FILES = 1000;

/**
 * Records a crash loop in a file, which outlives this process and the gateway. The gateway turns it into an alert as
 * soon as it runs, also if it was the service that crashed. Never throws.
 */
export function noteCrashLoop(
  dataDir: string,
  { service, reason, crashes }: Extract<SupervisorEvent, { type: 'crash-loop' }>,
  { node, clock, logger }: { node: string; clock: Clock; logger: Logger },
): void {
  const at = clock.now();
  const file = crashLoopFile(dataDir, `${String(at).padStart(15, '0')}-${service}`);
  const crashLoop: CrashLoop = { service, node, crashes, reason, at };
  if (countFiles(dirname(file)) >= MAX_FILES) return;
  replacePrivateFile(file, JSON.stringify(crashLoop)).catch((error) =>
    logger.warn(`The crash loop of ${service} could not be recorded for alerts: ${messageOf(error)}`, {
      error,
    }),
  );
}

function countFiles(folder: string): number {
  try {
    return readdirSync(folder).length;
  } catch {
    return 0;
  }
}
