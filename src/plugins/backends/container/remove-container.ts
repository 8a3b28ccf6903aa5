import { setTimeout as pause } from 'node:timers/promises';
import { messageOf } from '../../../kit/errors/errors.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { Engine } from './engine.ts';

const REMOVAL_TRIES = 6;
const REMOVAL_PAUSE_MS = 150;

/** Removes a container. Failures are only logged, because the next start of the platform retries the removal. */
export async function removeContainer(engine: Engine, logger: Logger, id: string): Promise<void> {
  try {
    await removeWithRetries(engine, id);
  } catch (error) {
    logger.diagnostic({
      domain: 'plugins',
      event: 'container.not_removed',
      level: 'error',
      reasonCode: 'CONTAINER_NOT_REMOVED',
      message: `The container ${id.slice(0, 12)} could not be removed; the next start retries: ${messageOf(error)}`,
      outcome: 'failed',
      error,
    });
  }
}

/** Retries a failed removal, because engines answer 409 or 500 while they are still stopping the container. */
async function removeWithRetries(engine: Engine, id: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await engine.remove(id);
    } catch (error) {
      if (tries === REMOVAL_TRIES) throw error;
      await pause(REMOVAL_PAUSE_MS * tries);
    }
  }
}
