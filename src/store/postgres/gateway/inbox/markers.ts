import { createHash } from 'node:crypto';
import type { ClaimResult, MarkerClaim, MarkerState } from '../../../ports/index.ts';
import { BatchWriter } from '../../batch-writer.ts';
import type { PostgresDatabase } from '../../database.ts';
import { HAS_STANDBY, type ReplicationBarrier } from '../../replication-barrier.ts';
import type { Insert } from './inserts.ts';
import { type MarkerTime, markerNow } from './marker-time.ts';
import { hexOf, type NewRow } from './rows.ts';

const DIGEST_BYTES = 16;
/**
 * Maximum attempts to claim an idempotency marker. A claim is repeated if the marker was released after the failed
 * attempt.
 */
const MAX_ATTEMPTS = 10;

/** Maximum number of digests per lookup. At most MAX_LOOKUPS_RUNNING lookups run at the same time. */
const MAX_LOOKUP_ITEMS = 256;
const MAX_LOOKUPS_RUNNING = 2;

/** Returns the digest under which an idempotency marker is stored. */
export function digestOf(key: string): Buffer {
  return createHash('sha256').update(key).digest().subarray(0, DIGEST_BYTES);
}

interface FoundMarker {
  state: MarkerState;
  /** Whether commits wait for a standby. */
  hasStandby: boolean;
}

/** Idempotency markers. A unique index ensures that only one gateway claims a marker. */
export class PostgresMarkers {
  readonly #database: PostgresDatabase;
  readonly #inserts: BatchWriter<Insert, boolean>;
  readonly #lookups: BatchWriter<Uint8Array, FoundMarker | undefined>;
  readonly #time: MarkerTime;
  readonly #barrier: ReplicationBarrier;
  /**
   * Claims in flight of this process, by digest. A second claim of a digest waits, because a batch must not contain a
   * digest twice.
   */
  readonly #inFlight = new Map<string, Promise<unknown>>();

  constructor(
    database: PostgresDatabase,
    inserts: BatchWriter<Insert, boolean>,
    { time, barrier }: { time: MarkerTime; barrier: ReplicationBarrier },
  ) {
    this.#database = database;
    this.#inserts = inserts;
    this.#time = time;
    this.#barrier = barrier;
    this.#lookups = new BatchWriter({
      write: (digests) => this.#read(digests),
      sizeOf: () => DIGEST_BYTES,
      maxRunning: MAX_LOOKUPS_RUNNING,
      maxItems: MAX_LOOKUP_ITEMS,
      maxBytes: MAX_LOOKUP_ITEMS * DIGEST_BYTES,
    });
  }

  /** Returns the state of an unexpired idempotency marker. */
  async find(digest: Uint8Array): Promise<MarkerState | undefined> {
    const found = await this.#lookups.add(digest);
    // The response to a duplicate acknowledges the earlier delivery. The earlier delivery must therefore be on the
    // standby first.
    if (found?.state === 'done' && found.hasStandby) await this.#barrier.pass();
    return found?.state;
  }

  /** Inserts the row if no unexpired marker has its digest. Otherwise returns the state of that marker. */
  async claim(
    row: NewRow & { marker: Uint8Array },
    { expiresAt }: MarkerClaim,
    state: MarkerState,
  ): Promise<ClaimResult> {
    const name = hexOf(row.marker);
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      while (this.#inFlight.has(name)) await this.#inFlight.get(name)!.catch(() => {});
      const inserting = this.#inserts.add({
        row,
        claim: { state, expiresAt },
        replayed: row.delivery.replayOf,
      });
      this.#inFlight.set(name, inserting);
      try {
        if (await inserting) return 'begun';
      } finally {
        // The finished claim is removed before waiting callers continue, so that only one of the callers claims next.
        this.#inFlight.delete(name);
      }
      const held = await this.find(row.marker);
      if (held) return held;
    }
    throw new Error(`A marker was claimed and released ${MAX_ATTEMPTS} times while it was read.`);
  }

  /** Sets the idempotency marker of the digest to `done`, whether or not the marker exists. */
  async settle(digest: Uint8Array, expiresAt: number): Promise<void> {
    await this.#database.sql(
      `insert into svc.delivery_marker (digest, state, expires_at) values ($1, 'done', ${markerNow('$2')} + $3::bigint)
       on conflict (digest) do update set state = 'done', expires_at = excluded.expires_at`,
      [digest, this.#time.now(), this.#time.untilMs(expiresAt)],
    );
  }

  /** Deletes at most `limit` expired idempotency markers. Returns the number of deleted markers. */
  async prune(limit: number): Promise<number> {
    const { rowCount } = await this.#database.sql(
      `delete from svc.delivery_marker where ctid = any(array(
         select ctid from svc.delivery_marker where expires_at <= ${markerNow('$1')} order by expires_at limit $2
         for update skip locked))`,
      [this.#time.now(), limit],
    );
    return rowCount ?? 0;
  }

  /** The query is planned at each call. A plan that was made for an empty table would scan the table. */
  async #read(digests: readonly Uint8Array[]): Promise<(FoundMarker | undefined)[]> {
    const { rows } = await this.#database.sql<FoundMarker & { digest: Buffer }>(
      `select digest, state, ${HAS_STANDBY} as "hasStandby" from svc.delivery_marker
       where digest = any($1) and expires_at > ${markerNow('$2')}`,
      [digests, this.#time.now()],
    );
    const found = new Map(rows.map((row) => [hexOf(row.digest), row]));
    return digests.map((digest) => found.get(hexOf(digest)));
  }
}
