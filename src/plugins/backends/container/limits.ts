import { PlatformError } from '../../../kit/errors/errors.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { Engine } from './engine.ts';
import type { ContainerConfig } from './spec.ts';

export interface LimitCheckDeps {
  engine: Engine;
  config: ContainerConfig;
  logger: Logger;
}

/**
 * Returns a check for created containers. If `requireLimits` is true, the check throws SANDBOX_ERROR for an engine that
 * ignores limits. After the first success, the check is skipped.
 */
export function createLimitCheck({ engine, config, logger }: LimitCheckDeps): (id: string) => Promise<void> {
  let isChecked = false;
  return async (id) => {
    if (isChecked) return;
    const { memoryBytes, pidsLimit } = await engine.state(id);
    const missing = [...(memoryBytes > 0 ? [] : ['memory']), ...(pidsLimit > 0 ? [] : ['processes'])];
    if (missing.length > 0 && config.requireLimits) throw unlimited(missing, config.socket);
    isChecked = true;
    if (missing.length > 0)
      logger.warn(
        `Containers run without limits for ${missing.join(' and ')}, because the engine does not enforce them`,
      );
  };
}

function unlimited(missing: readonly string[], socket: string): PlatformError {
  return new PlatformError(
    'SANDBOX_ERROR',
    `The container engine at ${socket} does not limit ${missing.join(' and ')}. A rootless engine needs cgroups v2, delegated to its user. To run without these limits, set execution.container.requireLimits to false.`,
    { details: { socket, missing } },
  );
}
