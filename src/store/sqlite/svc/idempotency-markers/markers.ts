import type { MaybePromise } from '../../../../kit/data/maybe-promise.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { ClaimResult, MarkerClaim, MarkerState } from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import type { Step, Unit } from '../committer/protocol.ts';
import { SQL } from '../deliveries/statements.ts';
import type { InboxLog } from '../inbox-log.ts';
import { createMarkerIndex, type MarkerIndex } from './marker-index.ts';
import { digestOf, type MarkerRow, markerStatements } from './marker-rows.ts';
import { createPendingRelease, type MarkerLoad, type PendingRelease, startMarkerLoad } from './startup.ts';

/**
 * Maximum number of markers in the in-memory index. The index then takes about 16 MB. Older markers move to a table
 * that is indexed by digest.
 */
const MAX_INDEXED = 500_000;
/**
 * Minimum time between two lookups that read new markers of other processes. A claim checks for these markers in any
 * case.
 */
const CATCH_UP_MS = 250;
/**
 * Number of markers below which all markers are indexed before the store opens. A larger table is indexed in the
 * background.
 */
const LOADED_AT_START = 1000;

export interface MarkerOptions {
  logger: Logger;
  maxIndexed?: number;
  /**
   * Whether other processes claim markers in the same file, true by default. If so, each claim checks for newer claims
   * of other processes.
   */
  shared?: boolean;
}

interface Inserted {
  changes: number;
  rowid: number;
}

/**
 * Append-only table of markers with an in-memory index. Each claim has its own row, so that an expired claim cannot
 * release a later claim.
 */
export class Markers {
  readonly #db: Database;
  readonly #log: InboxLog;
  readonly #clock: Clock;
  readonly #maxIndexed: number;
  readonly #shared: boolean;
  readonly #sql: ReturnType<typeof markerStatements>;
  readonly #index: MarkerIndex;
  readonly #load: MarkerLoad;
  readonly #pendingRelease: PendingRelease;
  /**
   * Claims that are being written, by the first 48 bits of their digests. Concurrent claims wait for the outcome.
   * Numbers are faster keys than strings.
   */
  readonly #inFlight = new Map<number, Promise<unknown>>();
  /** Marker ids of the sync deliveries that run in this process, by webhook id. */
  readonly #held = new Map<string, number>();
  #caughtUpAt = 0;
  #hasOld: boolean;
  /** Id of the last marker. If no other process writes, this class assigns the ids before the rows are written. */
  #lastId: number;
  /** Id up to which all rows, including those of other processes, are indexed or being indexed. */
  #seen: number;
  /** Id up to which all `pending` rows belong to dead processes. */
  #orphanedUntil = 0;

  constructor(
    db: Database,
    log: InboxLog,
    clock: Clock,
    { logger, maxIndexed = MAX_INDEXED, shared = true }: MarkerOptions,
  ) {
    const sql = markerStatements(db);
    this.#db = db;
    this.#log = log;
    this.#clock = clock;
    this.#maxIndexed = maxIndexed;
    this.#shared = shared;
    this.#sql = sql;
    this.#index = createMarkerIndex(() => sql.oldest.get()!.id);
    this.#hasOld = sql.anyOld.get() !== undefined;
    this.#lastId = sql.lastId.get()?.id ?? 0;
    const oldestAtStart = sql.oldest.get()!.id;
    const isSmall = this.#lastId - oldestAtStart < LOADED_AT_START;
    this.#seen = isSmall ? 0 : this.#lastId;
    this.#pendingRelease = createPendingRelease(log, logger);
    this.#catchUp();
    const from = isSmall ? this.#seen + 1 : oldestAtStart;
    this.#load = startMarkerLoad(log, this.#index, { from, until: this.#seen });
  }

  find(key: string, now: number): MaybePromise<MarkerState | undefined> {
    return this.findDigest(digestOf(key), now);
  }

  findDigest(digest: Uint8Array, now: number): MaybePromise<MarkerState | undefined> {
    const loading = this.#load.ready();
    if (loading) return loading.then(() => this.findDigest(digest, now));
    const mayBeOld = this.#shared && this.#clock.monotonic() - this.#caughtUpAt >= CATCH_UP_MS;
    // This fast path skips the query. The index is up to date and lacks the marker, and there are no old markers.
    const isIndexed = this.#index.find(digest).length > 0;
    if (!mayBeOld && !this.#hasOld && !isIndexed) return undefined;
    return this.#readBack(isIndexed, () => {
      if (mayBeOld) this.#catchUp();
      return this.#lookUp(digest, now);
    });
  }

  /** Claims the marker if it is free, and writes `steps` in the same transaction. */
  async claim(
    { key, expiresAt }: MarkerClaim,
    state: MarkerState,
    webhookId: string,
    steps: (digest: Uint8Array) => Step[],
  ): Promise<ClaimResult> {
    const digest = digestOf(key);
    const name = digest.readUIntBE(0, 6);
    /** All rows with ids up to this value are in the database. */
    let readable = 0;
    for (;;) {
      const loading = this.#load.ready();
      if (loading) {
        await loading;
        continue;
      }
      const concurrent = this.#inFlight.get(name);
      if (concurrent) {
        await concurrent.catch(() => {});
        continue;
      }
      const [newest = 0] = this.#index.find(digest);
      if (newest > readable) {
        readable = Math.max(this.#seen, this.#lastId);
        await this.#log.settled();
        continue;
      }
      const now = this.#clock.now();
      // No `await` is allowed between this check and the claim below. Otherwise, a concurrent claim could pass the same
      // check.
      const taken = this.#lookUp(digest, now);
      if (taken) return taken;
      const id = this.#nextId();
      const guard: Step = this.#shared
        ? [SQL.claimAmongOthers, [digest, state, expiresAt, this.#seen, digest, now]]
        : [SQL.claim, [id, digest, state, expiresAt]];
      const writing = this.#insert({ guarded: this.#shared, steps: [guard, ...steps(digest)] }, id);
      this.#inFlight.set(name, writing);
      let claimed: Inserted;
      try {
        claimed = await writing;
      } finally {
        // The entry must be deleted before waiting claims check the map again. Otherwise, the waiting claims would loop
        // forever.
        this.#inFlight.delete(name);
      }
      const { changes, rowid } = claimed;
      if (changes === 1) {
        this.#addOwn(digest, rowid);
        if (state === 'pending') this.#held.set(webhookId, rowid);
        // The claim is already committed, so an error of this read is ignored. The next claim reads the rows again.
        if (rowid > this.#seen) await this.#readOthers().catch(() => {});
        return 'begun';
      }
      await this.#readOthers();
    }
  }

  /** Returns the steps that end the claim of a delivery. If `expiresAt` is null, the steps release the marker. */
  finish(key: string, expiresAt: number | null, webhookId: string): Unit['steps'] {
    const id = this.#held.get(webhookId);
    this.#held.delete(webhookId);
    if (id === undefined) return expiresAt === null ? [] : [this.#insertDone(digestOf(key), expiresAt)];
    return [expiresAt === null ? [SQL.releaseMarker, [id]] : [SQL.keepMarker, [expiresAt, id]]];
  }

  /** Inserts a row with the state `done`, even if the table already has rows for the marker. */
  async settle(digest: Uint8Array, expiresAt: number): Promise<void> {
    const id = this.#nextId();
    const steps: Step[] = [[SQL.claim, [id, digest, 'done', expiresAt]]];
    const { rowid } = await this.#insert({ guarded: false, steps }, id);
    this.#addOwn(digest, rowid);
    if (rowid > this.#seen) await this.#readOthers();
  }

  async prune(now: number, limit: number): Promise<number> {
    const expired = await this.#changes([SQL.pruneMarkers, [now, limit]]);
    const old = this.#hasOld ? await this.#changes([SQL.pruneOldMarkers, [now, limit]]) : 0;
    return expired + old + (await this.#fold(now, limit));
  }

  /** Releases all claims that are `pending` now. Must only be called if the processes of these claims are dead. */
  releasePending(): void {
    const range = { from: this.#sql.oldest.get()!.id, until: Math.max(this.#seen, this.#lastId) };
    this.#orphanedUntil = range.until;
    this.#pendingRelease.start(range);
  }

  async close(): Promise<void> {
    this.#load.close();
    await this.#pendingRelease.close();
  }

  #nextId(): number | null {
    return this.#shared ? null : ++this.#lastId;
  }

  /** Inserts a marker. An id is only given if no other process writes, so the insertion cannot conflict. */
  #insert(unit: Unit, id: number | null): Promise<Inserted> {
    return id === null
      ? this.#log.commit(unit)
      : this.#log.append(unit).then(() => ({ changes: 1, rowid: id }));
  }

  #readOthers(): Promise<void> {
    return this.#db.read(() => this.#catchUp());
  }

  #catchUp(): void {
    for (const { id, digest } of this.#sql.since.iterate(this.#seen)) {
      this.#index.add(digest, id);
      this.#seen = id;
    }
    // Another process might have moved old markers to the separate table.
    this.#hasOld ||= this.#sql.anyOld.get() !== undefined;
    this.#caughtUpAt = this.#clock.monotonic();
  }

  #addOwn(digest: Uint8Array, id: number): void {
    // A gap in the ids means that another process has written rows. The next catch-up reads those rows and this row.
    if (this.#shared && id !== this.#seen + 1) return;
    this.#index.add(digest, id);
    this.#seen = id;
  }

  #isOrphaned({ id, state }: MarkerRow): boolean {
    return state === 'pending' && id <= this.#orphanedUntil;
  }

  #lookUp(digest: Uint8Array, now: number): MarkerState | undefined {
    let moved = false;
    for (const id of this.#index.find(digest)) {
      const row = this.#sql.row.get(id);
      if (row && row.expiresAt > now && row.digest.equals(digest) && !this.#isOrphaned(row)) return row.state;
      moved ||= row === undefined;
    }
    if (!this.#hasOld && !moved) return undefined;
    return this.#sql.old.get(bufferOf(digest), now) ? 'done' : undefined;
  }

  async #readBack<T>(isIndexed: boolean, query: () => T): Promise<T> {
    if (isIndexed) await this.#log.settled();
    return this.#db.read(query);
  }

  /**
   * Returns the step that inserts a marker as `done`. The id is indexed before its row is written, which is safe
   * because lookups ignore indexed ids without a row.
   */
  #insertDone(digest: Uint8Array, expiresAt: number): Step {
    const id = this.#nextId();
    if (id !== null) this.#index.add(digest, id);
    return [SQL.claim, [id, digest, 'done', expiresAt]];
  }

  async #changes(step: Step): Promise<number> {
    return (await this.#log.commit({ guarded: false, steps: [step] })).changes;
  }

  async #fold(now: number, limit: number): Promise<number> {
    // Gaps in the ids count as markers, because an exact count would scan all rows.
    const span = await this.#db.read(
      () => Math.max(this.#sql.lastId.get()?.id ?? 0, this.#lastId) + 1 - this.#sql.oldest.get()!.id,
    );
    if (span <= this.#maxIndexed) return 0;
    const some = Math.min(limit, span - this.#maxIndexed);
    this.#hasOld = true;
    const folded = await this.#log.commit({
      guarded: false,
      steps: [
        [SQL.foldMarkers, [some]],
        [SQL.dropFolded, [some, now]],
      ],
    });
    return folded.changes;
  }
}

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
