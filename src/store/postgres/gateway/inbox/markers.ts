import { createHash } from 'node:crypto';
import type { ClaimResult, MarkerClaim, MarkerState } from '../../../ports/index.ts';
import type { BatchWriter } from '../../batch-writer.ts';
import type { PostgresDatabase } from '../../database.ts';
import { HAS_STANDBY, type ReplicationBarrier } from '../../replication-barrier.ts';
import type { Insert } from './inserts.ts';
import { type MarkerTime, markerNow } from './marker-time.ts';
import { hexOf, type NewRow } from './rows.ts';

const DIGEST_BYTES = 16;
/**
 * Maximum attempts to claim a marker. A claim is repeated if the marker is released between a failed claim and the read
 * of its state.
 */
const MAX_ATTEMPTS = 10;

/** Returns the digest under which a marker is stored. */
export function digestOf(key: string): Buffer {
  return createHash('sha256').update(key).digest().subarray(0, DIGEST_BYTES);
}

/** Idempotency markers. The unique index on the digest ensures that only one gateway claims a marker. */
export class PostgresMarkers {
  readonly #database: PostgresDatabase;
  readonly #inserts: BatchWriter<Insert, boolean>;
  readonly #time: MarkerTime;
  readonly #barrier: ReplicationBarrier;
  /**
   * Claims in flight of this process, by digest. A second claim of a digest waits for the first claim, because a batch
   * must not contain a digest twice.
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
  }

  /** Returns the state of an unexpired marker. */
  async find(digest: Uint8Array): Promise<MarkerState | undefined> {
    const { rows } = await this.#database.sql<{ state: MarkerState; hasStandby: boolean }>(
      `select state, ${HAS_STANDBY} as "hasStandby" from svc.delivery_marker
       where digest = $1 and expires_at > ${markerNow('$2')}`,
      [digest, this.#time.now()],
    );
    const [found] = rows;
    // A duplicate acknowledges the delivery that has claimed the marker.
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
      const inserting = this.#inserts.add({ row, claim: { state, expiresAt }, replayed: null });
      this.#inFlight.set(name, inserting);
      try {
        if (await inserting) return 'begun';
      } finally {
        // The finished claim is removed before any waiting caller continues, so that only one caller claims next.
        this.#inFlight.delete(name);
      }
      const held = await this.find(row.marker);
      if (held) return held;
    }
    throw new Error(`A marker was claimed and released ${MAX_ATTEMPTS} times while it was read.`);
  }

  /** Sets the marker of the digest to `done`, whether or not the marker exists. */
  async settle(digest: Uint8Array, expiresAt: number): Promise<void> {
    await this.#database.sql(
      `insert into svc.delivery_marker (digest, state, expires_at) values ($1, 'done', ${markerNow('$2')} + $3::bigint)
       on conflict (digest) do update set state = 'done', expires_at = excluded.expires_at`,
      [digest, this.#time.now(), this.#time.untilMs(expiresAt)],
    );
  }

  /** Deletes at most `limit` expired markers. Returns the number of deleted markers. */
  async prune(limit: number): Promise<number> {
    const { rowCount } = await this.#database.sql(
      `delete from svc.delivery_marker where digest in (
         select digest from svc.delivery_marker where expires_at <= ${markerNow('$1')} order by expires_at limit $2
         for update skip locked)`,
      [this.#time.now(), limit],
    );
    return rowCount ?? 0;
  }
}
