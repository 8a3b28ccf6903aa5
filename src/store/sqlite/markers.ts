import { hash } from 'node:crypto';
import type { Clock } from '../../kit/clock.ts';
import type { Logger } from '../../kit/logger.ts';
import type { MaybePromise } from '../../kit/maybe-promise.ts';
import type { ClaimResult, MarkerClaim, MarkerState } from '../ports/index.ts';
import type { Step, Unit } from './committer/protocol.ts';
import type { Database } from './database.ts';
import { SQL } from './delivery-statements.ts';
import type { InboxLog } from './inbox-log.ts';
import { createMarkerIndex } from './marker-index.ts';
import { createPendingRelease, startMarkerLoad } from './marker-startup.ts';

/** Half of SHA-256: forging the marker of somebody else's delivery takes a second preimage of 128 bits. */
const DIGEST_BYTES = 16;
/** Markers that memory holds at most, in some 16 MB; older ones move to a table with an index of its own. */
const MOST_INDEXED = 500_000;
/** How long another process's claim may go unnoticed by a mere look; a claim of ours always notices. */
const LOOK_AGAIN_MS = 250;
/** So many are indexed before the store is open; more follow in the background. */
const LOADED_AT_START = 1000;

export interface Markers {
  find(key: string, now: number): MaybePromise<MarkerState | undefined>;
  findDigest(digest: Uint8Array, now: number): MaybePromise<MarkerState | undefined>;
  /** Writes `steps` together with a claim that nobody holds; resolves with what became of it. */
  claim(
    claim: MarkerClaim,
    state: MarkerState,
    webhookId: string,
    steps: (digest: Uint8Array) => Step[],
  ): Promise<ClaimResult>;
  /** The steps that end the claim of `webhookId`: `expiresAt` null gives it up. */
  finish(key: string, expiresAt: number | null, webhookId: string): Unit['steps'];
  /** Marks it `done` beside whatever else there is of it. */
  settle(digest: Uint8Array, expiresAt: number): Promise<void>;
  prune(now: number, limit: number): Promise<number>;
  /** Every claim that is `pending` now is of a process that died: it is free from here on. */
  releasePending(): void;
  /** Settles when nothing of it is under way in the background. */
  close(): Promise<void>;
}

export interface MarkerOptions {
  logger: Logger;
  /** Default 500,000. */
  mostIndexed?: number;
  /** Whether other processes claim in the same file: then the statement looks for theirs. Default true. */
  shared?: boolean;
}

interface Row {
  id: number;
  digest: Buffer;
  state: MarkerState;
  expiresAt: number;
}

/**
 * Markers: an append-only log, decided in memory. Each claim has a row of its own, so the end of one that lapsed
 * cannot touch the row of whoever took over. Rows of other processes are found by their ids, which are higher than
 * the last that this process has seen: the claim's own statement checks, in the transaction that writes.
 */
export function createMarkers(
  db: Database,
  log: InboxLog,
  clock: Clock,
  { logger, mostIndexed = MOST_INDEXED, shared = true }: MarkerOptions,
): Markers {
  const sql = statements(db);
  const index = createMarkerIndex(() => sql.oldest.get()!.id);
  /**
   * Claims that are being written, by the first 48 bits of their digests: who comes second waits for the outcome, and finds
   * out whether it was his. Numbers, as the engine files each text that it looks up for good: a tenth of what a claim costs.
   */
  const underWay = new Map<number, Promise<unknown>>();
  /** Rows of sync deliveries that run here. */
  const held = new Map<string, number>();
  let lookedAt = clock.monotonic();
  let hasOld = sql.anyOld.get() !== undefined;
  /** Given here where nobody else gives any: then a row is known before it is in the file. */
  let lastId = sql.lastId.get()?.id ?? 0;
  const oldestAtStart = sql.oldest.get()!.id;
  const isSmall = lastId - oldestAtStart < LOADED_AT_START;
  /** All rows up to this one are indexed, or being loaded; other processes' too. */
  let seen = isSmall ? 0 : lastId;
  /** Pending rows up to this one are of processes that died. */
  let orphanedUntil = 0;
  const pendingRelease = createPendingRelease(log, logger);
  catchUp();
  const load = startMarkerLoad(log, index, { from: isSmall ? seen + 1 : oldestAtStart, until: seen });

  const nextId = (): number | null => (shared ? null : ++lastId);

  /** Writes what inserts a marker. `id` is that of its row, where it was given here: then nobody can have been faster. */
  const insert = (unit: Unit, id: number | null): Promise<{ changes: number; rowid: number }> =>
    id === null ? log.commit(unit) : log.append(unit).then(() => ({ changes: 1, rowid: id }));

  function catchUp(): void {
    for (const { id, digest } of sql.since.iterate(seen)) {
      index.add(digest, id);
      seen = id;
    }
    // Another process may have begun to move old ones.
    hasOld ||= sql.anyOld.get() !== undefined;
    lookedAt = clock.monotonic();
  }

  function note(digest: Uint8Array, id: number): void {
    // A gap: another process wrote in between. Our own row is then found again by the next look.
    if (shared && id !== seen + 1) return;
    index.add(digest, id);
    seen = id;
  }

  const isOrphaned = ({ id, state }: Row): boolean => state === 'pending' && id <= orphanedUntil;

  function look(digest: Uint8Array, now: number): MarkerState | undefined {
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
    const mayBeOld = shared && clock.monotonic() - lookedAt >= LOOK_AGAIN_MS;
    // Nobody has it, as for nearly every delivery: memory alone says so.
    const isIndexed = index.find(digest).length > 0;
    if (!mayBeOld && !hasOld && !isIndexed) return undefined;
    return readBack(isIndexed, () => {
      if (mayBeOld) catchUp();
      return look(digest, now);
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
      /** Rows up to this one can be read. */
      let readable = 0;
      for (;;) {
        const loading = load.ready();
        if (loading) {
          await loading;
          continue;
        }
        const rival = underWay.get(name);
        if (rival) {
          await rival.catch(() => {});
          continue;
        }
        const [newest = 0] = index.find(digest);
        if (newest > readable) {
          readable = Math.max(seen, lastId);
          await log.settled();
          continue;
        }
        const now = clock.now();
        // In this very turn: between the look and the claim nobody else gets in.
        const taken = look(digest, now);
        if (taken) return taken;
        const id = nextId();
        const guard: Step = shared
          ? [SQL.claimAmongOthers, [digest, state, expiresAt, seen, digest, now]]
          : [SQL.claim, [id, digest, state, expiresAt]];
        const writing = insert({ guarded: shared, steps: [guard, ...steps(digest)] }, id);
        underWay.set(name, writing);
        let made: Awaited<typeof writing>;
        try {
          made = await writing;
        } finally {
          // At once: who waits for it asks again in the same turn, and over and over until it is gone.
          underWay.delete(name);
        }
        const { changes, rowid } = made;
        if (changes === 1) {
          note(digest, rowid);
          if (state === 'pending') held.set(webhookId, rowid);
          // It is written, whatever becomes of this look: the next one makes up for it.
          if (rowid > seen) await db.read(catchUp).catch(() => {});
          return 'begun';
        }
        await db.read(catchUp);
      }
    },

    finish(key, expiresAt, webhookId) {
      const id = held.get(webhookId);
      held.delete(webhookId);
      if (id === undefined) return expiresAt === null ? [] : [doneAnew(digestOf(key), expiresAt)];
      return [expiresAt === null ? [SQL.releaseMarker, [id]] : [SQL.keepMarker, [expiresAt, id]]];
    },

    async settle(digest, expiresAt) {
      const id = nextId();
      const steps: Step[] = [[SQL.claim, [id, digest, 'done', expiresAt]]];
      const { rowid } = await insert({ guarded: false, steps }, id);
      note(digest, rowid);
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

  /** Indexed at once where its id is known: as long as the row is not there, it is merely not found. */
  function doneAnew(digest: Uint8Array, expiresAt: number): Step {
    const id = nextId();
    if (id !== null) index.add(digest, id);
    return [SQL.claim, [id, digest, 'done', expiresAt]];
  }

  async function changes(step: Step): Promise<number> {
    return (await log.commit({ guarded: false, steps: [step] })).changes;
  }

  async function fold(now: number, limit: number): Promise<number> {
    // Gaps count too: to count rows, SQLite would read all of them.
    const span = await db.read(() => Math.max(sql.lastId.get()?.id ?? 0, lastId) + 1 - sql.oldest.get()!.id);
    if (span <= mostIndexed) return 0;
    const some = Math.min(limit, span - mostIndexed);
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

/** Asked for twice for each delivery, nearly always in a row: remembering more would only keep garbage alive. */
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
    /** Where there is none, all up to the last that ever was are gone; those behind it are on their way into the file. */
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
