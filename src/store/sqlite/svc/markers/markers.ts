import { hash } from 'node:crypto';
import type { MaybePromise } from '../../../../kit/data/maybe-promise.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import type { ClaimResult, MarkerClaim, MarkerState } from '../../../ports/index.ts';
import type { Database } from '../../database.ts';
import type { Step, Unit } from '../committer/protocol.ts';
import { SQL } from '../deliveries/statements.ts';
import type { InboxLog } from '../inbox-log.ts';
import { createMarkerIndex } from './marker-index.ts';
import { createPendingRelease, startMarkerLoad } from './startup.ts';

/** Half of SHA-256: forging another delivery's marker takes a second preimage of 128 bits. */
const DIGEST_BYTES = 16;
/** Maximum markers in memory, in some 16 MB; older ones move to a table with its own index. */
const MAX_INDEXED = 500_000;
/** Maximum delay until a read notices another process's claim; a claim always notices. */
const CATCH_UP_MS = 250;
/** Markers indexed before the store opens; the rest follow in the background. */
const LOADED_AT_START = 1000;

export interface Markers {
  find(key: string, now: number): MaybePromise<MarkerState | undefined>;
  findDigest(digest: Uint8Array, now: number): MaybePromise<MarkerState | undefined>;
  /** Claims the marker and writes `steps` in one transaction, if the marker is free. */
  claim(
    claim: MarkerClaim,
    state: MarkerState,
    webhookId: string,
    steps: (digest: Uint8Array) => Step[],
  ): Promise<ClaimResult>;
  /** Steps that end the claim of `webhookId`: `expiresAt` null releases it. */
  finish(key: string, expiresAt: number | null, webhookId: string): Unit['steps'];
  /** Adds a `done` row regardless of existing ones. */
  settle(digest: Uint8Array, expiresAt: number): Promise<void>;
  prune(now: number, limit: number): Promise<number>;
  /** Releases every claim that is `pending` now: its process is dead. */
  releasePending(): void;
  /** Resolves when no background work is in flight. */
  close(): Promise<void>;
}

export interface MarkerOptions {
  logger: Logger;
  /** Default 500,000. */
  maxIndexed?: number;
  /** Whether other processes claim in the same file; each claim then checks for theirs. Default true. */
  shared?: boolean;
}

interface Row {
  id: number;
  digest: Buffer;
  state: MarkerState;
  expiresAt: number;
}

/**
 * An append-only log with an in-memory index. Each claim has its own row, so the end of an expired claim
 * cannot touch its successor. Rows of other processes have ids above the last one seen; a claim checks them
 * in its transaction.
 */
export function createMarkers(
  db: Database,
  log: InboxLog,
  clock: Clock,
  { logger, maxIndexed = MAX_INDEXED, shared = true }: MarkerOptions,
): Markers {
  const sql = statements(db);
  const index = createMarkerIndex(() => sql.oldest.get()!.id);
  /**
   * Claims being written, by the first 48 bits of the digest; a concurrent claim waits for the outcome.
   * Numeric keys avoid string interning, a tenth of a claim's cost.
   */
  const inFlight = new Map<number, Promise<unknown>>();
  /** Markers of sync deliveries running in this process, by webhook id. */
  const held = new Map<string, number>();
  let caughtUpAt = clock.monotonic();
  let hasOld = sql.anyOld.get() !== undefined;
  /** Assigned here when no other process writes: the id is known before the row is in the file. */
  let lastId = sql.lastId.get()?.id ?? 0;
  const oldestAtStart = sql.oldest.get()!.id;
  const isSmall = lastId - oldestAtStart < LOADED_AT_START;
  /** All rows up to this id are indexed or being loaded, including those of other processes. */
  let seen = isSmall ? 0 : lastId;
  /** Pending rows up to this id belong to dead processes. */
  let orphanedUntil = 0;
  const pendingRelease = createPendingRelease(log, logger);
  catchUp();
  const load = startMarkerLoad(log, index, { from: isSmall ? seen + 1 : oldestAtStart, until: seen });

  const nextId = (): number | null => (shared ? null : ++lastId);

  /** Inserts a marker. With an `id` assigned here, no other process can have claimed first. */
  const insert = (unit: Unit, id: number | null): Promise<{ changes: number; rowid: number }> =>
    id === null ? log.commit(unit) : log.append(unit).then(() => ({ changes: 1, rowid: id }));

  function catchUp(): void {
    for (const { id, digest } of sql.since.iterate(seen)) {
      index.add(digest, id);
      seen = id;
    }
    // Another process may have started to move old markers.
    hasOld ||= sql.anyOld.get() !== undefined;
    caughtUpAt = clock.monotonic();
  }

  function addOwn(digest: Uint8Array, id: number): void {
    // A gap: another process wrote in between. The next catch-up finds both rows.
    if (shared && id !== seen + 1) return;
    index.add(digest, id);
    seen = id;
  }

  const isOrphaned = ({ id, state }: Row): boolean => state === 'pending' && id <= orphanedUntil;

  function lookUp(digest: Uint8Array, now: number): MarkerState | undefined {
    let moved = false;
    for (const id of index.find(digest)) {
      const row = sql.row.get(id);
      if (row && row.expiresAt > now && row.digest.equals(digest) && !isOrphaned(row)) return row.state;
      moved ||= row === undefined;
    }
    if (!hasOld && !moved) return undefined;
    return sql.old.get(bufferOf(digest), now) ? 'done' : undefined;
  }

  function find(digest: Uint8Array, now: number): MaybePromise<MarkerState | undefined> {
    const loading = load.ready();
    if (loading) return loading.then(() => find(digest, now));
    const mayBeOld = shared && clock.monotonic() - caughtUpAt >= CATCH_UP_MS;
    // Fast path for a new delivery: memory alone shows that the marker is free.
    const isIndexed = index.find(digest).length > 0;
    if (!mayBeOld && !hasOld && !isIndexed) return undefined;
    return readBack(isIndexed, () => {
      if (mayBeOld) catchUp();
      return lookUp(digest, now);
    });
  }

  async function readBack<T>(isIndexed: boolean, query: () => T): Promise<T> {
    if (isIndexed) await log.settled();
    return db.read(query);
  }

  return {
    find: (key, now) => find(digestOf(key), now),
    findDigest: find,

    async claim({ key, expiresAt }, state, webhookId, steps) {
      const digest = digestOf(key);
      const name = digest.readUIntBE(0, 6);
      /** Rows up to this id are in the database. */
      let readable = 0;
      for (;;) {
        const loading = load.ready();
        if (loading) {
          await loading;
          continue;
        }
        const concurrent = inFlight.get(name);
        if (concurrent) {
          await concurrent.catch(() => {});
          continue;
        }
        const [newest = 0] = index.find(digest);
        if (newest > readable) {
          readable = Math.max(seen, lastId);
          await log.settled();
          continue;
        }
        const now = clock.now();
        // No await between this check and the claim below: nothing can interleave.
        const taken = lookUp(digest, now);
        if (taken) return taken;
        const id = nextId();
        const guard: Step = shared
          ? [SQL.claimAmongOthers, [digest, state, expiresAt, seen, digest, now]]
          : [SQL.claim, [id, digest, state, expiresAt]];
        const writing = insert({ guarded: shared, steps: [guard, ...steps(digest)] }, id);
        inFlight.set(name, writing);
        let made: Awaited<typeof writing>;
        try {
          made = await writing;
        } finally {
          // Immediately: waiters re-check in the same turn and would loop until the entry is gone.
          inFlight.delete(name);
        }
        const { changes, rowid } = made;
        if (changes === 1) {
          addOwn(digest, rowid);
          if (state === 'pending') held.set(webhookId, rowid);
          // The claim is committed even if this read fails; the next one catches up.
          if (rowid > seen) await db.read(catchUp).catch(() => {});
          return 'begun';
        }
        await db.read(catchUp);
      }
    },

    finish(key, expiresAt, webhookId) {
      const id = held.get(webhookId);
      held.delete(webhookId);
      if (id === undefined) return expiresAt === null ? [] : [insertDone(digestOf(key), expiresAt)];
      return [expiresAt === null ? [SQL.releaseMarker, [id]] : [SQL.keepMarker, [expiresAt, id]]];
    },

    async settle(digest, expiresAt) {
      const id = nextId();
      const steps: Step[] = [[SQL.claim, [id, digest, 'done', expiresAt]]];
      const { rowid } = await insert({ guarded: false, steps }, id);
      addOwn(digest, rowid);
      if (rowid > seen) await db.read(catchUp);
    },

    async prune(now, limit) {
      const expired = await changes([SQL.pruneMarkers, [now, limit]]);
      const old = hasOld ? await changes([SQL.pruneOldMarkers, [now, limit]]) : 0;
      return expired + old + (await fold(now, limit));
    },

    releasePending() {
      const range = { from: sql.oldest.get()!.id, until: Math.max(seen, lastId) };
      orphanedUntil = range.until;
      pendingRelease.start(range);
    },

    async close() {
      load.close();
      await pendingRelease.close();
    },
  };

  /** A known id is indexed before its row is written; until then, lookups skip it. */
  function insertDone(digest: Uint8Array, expiresAt: number): Step {
    const id = nextId();
    if (id !== null) index.add(digest, id);
    return [SQL.claim, [id, digest, 'done', expiresAt]];
  }

  async function changes(step: Step): Promise<number> {
    return (await log.commit({ guarded: false, steps: [step] })).changes;
  }

  async function fold(now: number, limit: number): Promise<number> {
    // Includes gaps: counting rows would scan them all.
    const span = await db.read(() => Math.max(sql.lastId.get()?.id ?? 0, lastId) + 1 - sql.oldest.get()!.id);
    if (span <= maxIndexed) return 0;
    const some = Math.min(limit, span - maxIndexed);
    hasOld = true;
    const folded = await log.commit({
      guarded: false,
      steps: [
        [SQL.foldMarkers, [some]],
        [SQL.dropFolded, [some, now]],
      ],
    });
    return folded.changes;
  }
}

/**
 * Each delivery needs its digest twice, nearly always in a row; a larger cache would only retain garbage.
 */
let latest: { key: string; digest: Buffer } = { key: '', digest: Buffer.alloc(0) };

function digestOf(key: string): Buffer {
  if (key !== latest.key) latest = { key, digest: hash('sha256', key, 'buffer').subarray(0, DIGEST_BYTES) };
  return latest.digest;
}

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function statements(db: Database) {
  return {
    row: db.prepare<[number], Row>(
      'select id, digest, state, expires_at as expiresAt from delivery_marker where id = ?',
    ),
    since: db.prepare<[number], { id: number; digest: Buffer }>(
      'select id, digest from delivery_marker where id > ? order by id',
    ),
    /**
     * For an empty table: the id after the last one ever used, as later rows may still be in the journal.
     */
    oldest: db.prepare<[], { id: number }>(`select coalesce(
      (select min(id) from delivery_marker),
      (select seq + 1 from sqlite_sequence where name = 'delivery_marker'), 0) as id`),
    lastId: db.prepare<[], { id: number }>(
      "select seq as id from sqlite_sequence where name = 'delivery_marker'",
    ),
    anyOld: db.prepare('select 1 from delivery_marker_old limit 1'),
    old: db.prepare<[Buffer, number]>(
      'select 1 from delivery_marker_old where digest = ? and expires_at > ?',
    ),
  };
}
