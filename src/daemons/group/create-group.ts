import type { ServiceName } from '../../contracts/index.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import { Primary } from './primary.ts';
import type { PrimaryOptions } from './primary-options.ts';
import { type LoneProcess, loneProcess, type SiblingProcess } from './process-group.ts';
import { createSibling, type PrimaryChannel } from './sibling.ts';

export interface GroupOptions extends PrimaryOptions {
  /** Channel to the primary. Undefined unless a primary started this process. */
  primary: PrimaryChannel | undefined;
  platform: NodeJS.Platform;
}

/**
 * Creates the role of this process within its service. If processes cannot share a port on this system, the process
 * runs alone and logs a warning.
 */
export function createGroup(options: GroupOptions): LoneProcess | Primary | SiblingProcess {
  const { primary, size, platform, name, logger } = options;
  if (primary) return createSibling(primary);
  if (size <= 1) return loneProcess;
  if (platform === 'linux') return new Primary(options);
  warnAlone(name, size, logger);
  return loneProcess;
}

/** Warns that a service with several configured processes runs as a single process. @spec docs/decisions/0037 */
function warnAlone(name: ServiceName, size: number, logger: Logger): void {
  logger.diagnostic({
    domain: name,
    event: `${name}.single_process`,
    level: 'warn',
    reasonCode: 'SINGLE_PROCESS',
    message: `${name}.processes is ${size}, but only Linux can share a port between processes: ${name} runs as a single process.`,
    outcome: 'degraded',
  });
}
