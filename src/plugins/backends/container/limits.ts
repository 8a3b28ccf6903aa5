import { PlatformError } from '../../../kit/errors.ts';
import type { Logger } from '../../../kit/logger.ts';
import type { Engine } from './engine.ts';
import type { ContainerConfig } from './spec.ts';

export interface LimitCheckDeps {
  engine: Engine;
  config: ContainerConfig;
  logger: Logger;
}

/**
 * Looks at the first container that was made, before it starts: some engines leave out the limits that they cannot set
 * and say nothing (Podman without root on cgroups v1). Throws SANDBOX_ERROR then, unless the config takes it as it is.
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
        `Containers are not held to limits of ${missing.join(' and ')}: the engine does not set them`,
      );
  };
}

function unlimited(missing: readonly string[], socket: string): PlatformError {
  return new PlatformError(
    'SANDBOX_ERROR',
    `The container engine at ${socket} does not limit ${missing.join(' and ')}. Without root it needs cgroups v2, delegated to its user; or take it as it is with execution.container.requireLimits: false.`,
    { details: { socket, missing } },
  );
}
