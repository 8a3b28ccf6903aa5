import type { ServiceName } from '../../contracts/index.ts';
import type { Logger } from '../../kit/logger.ts';
import { createPrimary, type Primary, type PrimaryOptions } from './primary.ts';
import { type LoneProcess, loneProcess, type SiblingProcess } from './process-group.ts';
import { createSibling, type PrimaryChannel } from './sibling.ts';

export interface GroupOptions extends PrimaryOptions {
  /** Set when this process was started by a primary. */
  primary: PrimaryChannel | undefined;
  /** What the system is, as `process.platform` says. */
  platform: NodeJS.Platform;
}

/** What this process is to its daemon. Where the system cannot share a port among processes it stays alone, and says so. */
export function createGroup(options: GroupOptions): LoneProcess | Primary | SiblingProcess {
  const { primary, size, platform, name, logger } = options;
  if (primary) return createSibling(primary);
  if (size <= 1) return loneProcess;
  if (platform === 'linux') return createPrimary(options);
  warnAlone(name, size, logger);
  return loneProcess;
}

/** @spec docs/decisions/0037 */
function warnAlone(name: ServiceName, size: number, logger: Logger): void {
  logger.diagnostic({
    domain: name,
    event: `${name}.single_process`,
    level: 'warn',
    reasonCode: 'SINGLE_PROCESS',
    message: `${name}.processes is ${size}, but only Linux spreads the connections of one port over several processes: ${name} runs as one.`,
    outcome: 'degraded',
  });
}
