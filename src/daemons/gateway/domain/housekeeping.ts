import type { Clock } from '../../../kit/clock.ts';
import { every } from '../../../kit/clock.ts';
import { days, minutes } from '../../../kit/duration.ts';
import type { Logger } from '../../../kit/logger.ts';
import type { GatewayStore } from '../../../store/ports/index.ts';

const EVERY_MS = minutes(1);
/** Rows a write deletes at most: a sweep must not hold up the commits of deliveries. */
const CHUNK = 500;

export interface HousekeepingDeps {
  store: GatewayStore;
  /** How long finished deliveries are kept. */
  deliveriesDays: number;
  /** What svc.db may take; deliveries make room, their bodies first. */
  deliveriesMaxBytes: number;
  clock: Clock;
  logger: Logger;
}

/** Forgets what has run out, in small writes, from now until the returned function is called and its promise settles. */
export function startHousekeeping({
  store,
  deliveriesDays,
  deliveriesMaxBytes,
  clock,
  logger,
}: HousekeepingDeps): () => Promise<void> {
  let stopped = false;
  let sweeping: Promise<void> | undefined;

  async function drain(sweep: () => Promise<number>, least = CHUNK): Promise<void> {
    while (!stopped && (await sweep()) >= least);
  }

  async function sweep(): Promise<void> {
    const now = clock.now();
    try {
      await drain(() => store.cache.sweep(CHUNK));
      await drain(() => store.inbox.prune({ receivedBefore: now - days(deliveriesDays), now, limit: CHUNK }));
      await drain(() => store.inbox.shrink({ maxBytes: deliveriesMaxBytes, limit: CHUNK }), 1);
      await store.refreshTokens.prune(now);
      await store.mintedTokens.prune(now);
      await store.revocations.prune(now);
    } catch (error) {
      logger.warn('What has run out could not be swept from svc.db; trying again in a minute', { error });
    }
  }

  const stop = every(clock, EVERY_MS, () => {
    // A sweep that takes longer than the pause between two is not followed by a queue of others.
    sweeping ??= sweep().finally(() => {
      sweeping = undefined;
    });
  });
  return async () => {
    stopped = true;
    stop();
    await sweeping;
  };
}
