import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf, PlatformError } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import {
  type ClaimResult,
  type DeliveryEnd,
  type DeliveryRecord,
  type GatewayStore,
  type MarkerClaim,
  type MarkerState,
  type NewDelivery,
  SPILLED_STEP,
} from '../../../ports/index.ts';
import type { PostgresDatabase } from '../../database.ts';
import { PostgresWebhookInbox } from './inbox.ts';

export interface SpillOptions {
  /** Store on the disk of this machine, used only for spilled deliveries. */
  store: Pick<GatewayStore, 'inbox' | 'close'>;
  /**
   * Whether the store accepts new deliveries. If false, only deliveries of earlier processes are moved to PostgreSQL.
   */
  accepts: boolean;
  /**
   * Whether this process moves locally stored deliveries to PostgreSQL. Only one process per machine moves deliveries.
   */
  moves: boolean;
}

/**
 * Time limit for PostgreSQL to answer before a delivery is stored on the local disk. Senders often wait only ten
 * seconds.
 */
const STORE_WAIT_MS = seconds(3);
const RETRY_MS = seconds(1);
const PAGE = 100;
const MOVED: DeliveryEnd = {
  status: 'succeeded',
  httpStatus: 202,
  steps: '',
  outcome: null,
  durationMs: 0,
};

/**
 * Inbox that stores async deliveries on the local disk while PostgreSQL is unreachable, and moves the deliveries later.
 * If the disk fails, deliveries that are not moved yet are lost. @spec docs/scale-out.md "While PostgreSQL is away"
 */
export class SpillingInbox extends PostgresWebhookInbox {
  readonly #database: PostgresDatabase;
  readonly #spill: SpillOptions;
  readonly #logger: Logger;
  readonly #clock: Clock;
  /** The error of PostgreSQL, or undefined while PostgreSQL accepts writes. */
  #failure: unknown;
  /** Whether the local store might have deliveries that PostgreSQL lacks. */
  #isFilled: boolean;
  #moving: Promise<void>;
  #isClosed = false;

  constructor(
    database: PostgresDatabase,
    {
      clock,
      logger,
      leaseClock,
      spill,
    }: { clock: Clock; logger: Logger; leaseClock?: Clock | undefined; spill: SpillOptions },
  ) {
    super(database, { clock, logger, leaseClock });
    this.#database = database;
    this.#spill = spill;
    this.#logger = logger;
    this.#clock = clock;
    this.#isFilled = spill.moves;
    this.#moving = spill.moves ? this.#move() : Promise.resolve();
  }

  override get applyFailure(): unknown {
    return this.#failure;
  }

  override get waitingBytes(): number {
    return this.#spill.store.inbox.waitingBytes;
  }

  override async accept(
    delivery: NewDelivery,
    marker: MarkerClaim | undefined,
    steps: string,
  ): Promise<ClaimResult | 'spilled'> {
    if (this.#failure === undefined) {
      try {
        return await inTime(super.accept(delivery, marker, steps));
      } catch (error) {
        this.#lose(error);
      }
    }
    this.#isFilled = true;
    const claim = await this.#spill.store.inbox.accept(delivery, marker, steps);
    return claim === 'begun' ? 'spilled' : claim;
  }

  override async seen(markerKey: string, now: number): Promise<MarkerState | undefined> {
    const here = this.#isFilled ? await this.#spill.store.inbox.seen(markerKey, now) : undefined;
    if (here !== undefined || this.#failure !== undefined) return here;
    try {
      return await inTime(super.seen(markerKey, now));
    } catch (error) {
      this.#lose(error);
      return undefined;
    }
  }

  override async close(): Promise<void> {
    this.#isClosed = true;
    await this.#moving;
    await super.close();
    await this.#spill.store.close();
  }

  /**
   * Switches to the local store if PostgreSQL is unreachable, the local store accepts deliveries, and the inbox is not
   * closed. Otherwise, rethrows the error.
   */
  #lose(error: unknown): void {
    const isAway = error instanceof PlatformError && error.code === 'STORE_ERROR';
    if (!isAway || !this.#spill.accepts || this.#isClosed) throw error;
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#logger.error(
      `${messageOf(error)} Until then, async deliveries are accepted on the disk of this machine (inbox.whenStoreDown).`,
      { error },
    );
    this.#moving = this.#moving.then(() => this.#recover());
  }

  /** Waits until PostgreSQL accepts writes, then moves the locally stored deliveries to PostgreSQL. */
  async #recover(): Promise<void> {
    while (!this.#isClosed) {
      await sleep(RETRY_MS);
      try {
        await this.#database.probeWrites();
        break;
      } catch {}
    }
    if (this.#isClosed) return;
    this.#failure = undefined;
    this.#logger.info('PostgreSQL accepts deliveries again');
    if (this.#spill.moves) await this.#move();
  }

  /** Moves all locally stored deliveries to PostgreSQL, oldest first. Never rejects. */
  async #move(): Promise<void> {
    const { inbox } = this.#spill.store;
    let moved = 0;
    while (!this.#isClosed && this.#failure === undefined) {
      try {
        const page = await inbox.unfinished(PAGE);
        for (const record of page) await this.#moveOne(record);
        moved += page.length;
        if (page.length < PAGE) break;
      } catch (error) {
        this.#logger.warn(`Spilled deliveries cannot be moved to PostgreSQL yet: ${messageOf(error)}`, {
          error,
        });
        await sleep(RETRY_MS);
      }
    }
    // If PostgreSQL failed during the move, the local store can contain new deliveries. `#isFilled` then stays true
    // until the next move.
    if (this.#failure === undefined && !this.#isClosed) this.#isFilled = false;
    if (moved === 0) return;
    this.#logger.info(`${moved} deliveries that this machine accepted alone are in PostgreSQL now`);
    await inbox.prune({ receivedBefore: this.#clock.now() + 1, now: this.#clock.now(), limit: PAGE * PAGE });
  }

  async #moveOne(record: DeliveryRecord): Promise<void> {
    await this.adopt({ ...record, steps: `${record.steps};${SPILLED_STEP}` });
    await this.#spill.store.inbox.finish(record.webhookId, MOVED);
  }
}

/** Rejects with STORE_ERROR if PostgreSQL does not answer in time. A late answer is ignored. */
async function inTime<T>(answer: Promise<T>): Promise<T> {
  const stop = new AbortController();
  const late = sleep(STORE_WAIT_MS, undefined, { signal: stop.signal, ref: false }).then(() => {
    throw new PlatformError('STORE_ERROR', `PostgreSQL does not answer within ${STORE_WAIT_MS / 1000} s.`, {
      details: { reason: 'ETIMEDOUT' },
    });
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    stop.abort();
    late.catch(() => {});
    answer.catch(() => {});
  }
}
