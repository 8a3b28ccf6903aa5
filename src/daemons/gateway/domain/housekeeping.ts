import { LIMITS } from '../../../contracts/index.ts';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { every } from '../../../kit/time/clock.ts';
import { days, hours, minutes } from '../../../kit/time/duration.ts';
import type { GatewayStore } from '../../../store/ports/index.ts';
import { firstIdAt } from './messages/sortable-ids.ts';
import { REFUSED_REQUEST_MS } from './webhooks/refused/refused-requests.ts';

const EVERY_MS = minutes(1);
/**
 * Retention of the change feed. A process that was suspended for longer than this time loads all of its cached data
 * again.
 */
const FEED_MS = hours(1);
/** Maximum number of rows deleted per write. Small batches keep the commit delay of new deliveries short. */
const CHUNK = 500;

export interface HousekeepingDeps {
  store: GatewayStore;
  /** Retention of finished deliveries, and of dead items of queues, in days. */
  deliveriesDays: number;
  /**
   * Maximum size of svc.db in bytes. Above this size, the bodies of old deliveries are pruned first, and then the
   * deliveries.
   */
  deliveriesMaxBytes: number;
  /** Retention of messages, in days. */
  messagesDays: number;
  clock: Clock;
  logger: Logger;
}

/**
 * Deletes expired data regularly, in small writes. The returned function stops the sweeps and resolves when the last
 * write is done.
 */
export function startHousekeeping({
  store,
  deliveriesDays,
  deliveriesMaxBytes,
  messagesDays,
  clock,
  logger,
}: HousekeepingDeps): () => Promise<void> {
  let stopped = false;
  let sweeping: Promise<void> | undefined;

  async function drain(sweep: () => Promise<number>, least = CHUNK): Promise<void> {
    while (!stopped && (await sweep()) >= least);
  }

  async function pruneMessages(before: string): Promise<void> {
    let after: string | null = '';
    while (!stopped && after !== null) after = (await store.messages.prune(before, after, CHUNK)).next;
  }

  async function sweep(): Promise<void> {
    const now = clock.now();
    try {
      await drain(() => store.cache.sweep(CHUNK));
      await drain(() => store.inbox.prune({ receivedBefore: now - days(deliveriesDays), now, limit: CHUNK }));
      await drain(() => store.refusedRequests.prune(now - REFUSED_REQUEST_MS, CHUNK));
      await drain(() => store.inbox.shrink({ maxBytes: deliveriesMaxBytes, limit: CHUNK }), 1);
      await drain(() =>
        store.queues.prune({
          ackedBefore: now - LIMITS.idempotencyWindowMs,
          deadBefore: now - days(deliveriesDays),
          limit: CHUNK,
        }),
      );
      await pruneMessages(firstIdAt('msg', now - days(messagesDays)));
      await drain(() => store.messages.pruneKeys(now, CHUNK));
      await drain(() => store.refreshTokens.prune(now, CHUNK));
      await drain(() => store.mintedTokens.prune(now, CHUNK));
      await drain(() => store.revocations.prune(now, CHUNK));
      await drain(() => store.feed.prune(now - FEED_MS, CHUNK));
    } catch (error) {
      logger.warn('Expired data could not be deleted from svc.db; retrying in a minute', { error });
    }
  }

  const stop = every(clock, EVERY_MS, () => {
    // A sweep is skipped if the previous sweep has not finished.
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
