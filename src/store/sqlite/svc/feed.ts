import type { Clock } from '../../../kit/time/clock.ts';
import type { FeedChange, FeedCursor, FeedStore, FeedTopic } from '../../ports/index.ts';
import type { Database } from '../database.ts';

/**
 * Change feed. `sequence` is a safe cursor, because SQLite commits one transaction at a time. `feed_pruned` contains
 * the highest deleted sequence number.
 */
export const FEED = `
  create table feed (
    sequence integer primary key autoincrement,
    topic text not null,
    key text not null,
    added_at integer not null
  ) strict;
  create table feed_pruned (sequence integer not null) strict;
  insert into feed_pruned (sequence) values (0);
  create table feed_reader (
    fence integer primary key,
    sequence integer not null
  ) strict;`;

/** Adds a change to the change feed. Must be called in the same transaction as the change. */
export type AddToFeed = (topic: FeedTopic, key: string) => void;

export function feedWriter(db: Database, clock: Clock): AddToFeed {
  const add = db.prepare<[FeedChange & { now: number }]>(
    'insert into feed (topic, key, added_at) values (:topic, :key, :now)',
  );
  return (topic, key) => void add.run({ topic, key, now: clock.now() });
}

/** Reads the change feed. A cursor is a decimal sequence number. */
export function sqliteFeed(db: Database, clock: Clock): FeedStore {
  const sql = statements(db);
  const latest = (): Promise<FeedCursor> => db.read(() => cursorOf(sql.latest.get()!));
  return {
    begin: latest,
    latest,
    read: (after, limit) =>
      db.read(() => {
        if (sequenceOf(after) < sql.pruned.get()!)
          return { changes: [], cursor: cursorOf(sql.latest.get()!), isComplete: false };
        const rows = sql.after.all({ after: sequenceOf(after), limit });
        const changes = rows.map(({ topic, key }) => ({ topic, key }));
        const last = rows.at(-1);
        return { changes, cursor: last ? cursorOf(last.sequence) : after, isComplete: true };
      }),
    async noteRead(fence, cursor) {
      await db.write(() => {
        sql.noteRead.run({ fence, sequence: sequenceOf(cursor) });
        sql.dropReaders.run();
      });
    },
    behind: (cursor) => db.read(() => sql.behind.all({ sequence: sequenceOf(cursor), now: clock.now() })),
    prune: (before) =>
      db.write(() => {
        const { last, count } = sql.old.get({ before })!;
        if (count === 0) return 0;
        sql.notePruned.run({ sequence: last! });
        return sql.prune.run({ sequence: last! }).changes;
      }),
  };
}

const cursorOf = (sequence: number): FeedCursor => String(sequence) as FeedCursor;
const sequenceOf = (cursor: FeedCursor): number => Number(cursor);

function statements(db: Database) {
  return {
    latest: db
      .prepare<[], number>(
        'select max(coalesce((select max(sequence) from feed), 0), (select sequence from feed_pruned))',
      )
      .pluck(),
    pruned: db.prepare<[], number>('select sequence from feed_pruned').pluck(),
    after: db.prepare<[{ after: number; limit: number }], FeedChange & { sequence: number }>(
      'select sequence, topic, key from feed where sequence > :after order by sequence limit :limit',
    ),
    noteRead: db.prepare<[{ fence: number; sequence: number }]>(`
      insert into feed_reader (fence, sequence) values (:fence, :sequence)
      on conflict (fence) do update set sequence = excluded.sequence`),
    dropReaders: db.prepare<[]>('delete from feed_reader where fence not in (select fence from member)'),
    behind: db
      .prepare<[{ sequence: number; now: number }], number>(`
      select fence from member left join feed_reader using (fence)
      where kind = 'gateway' and ended_at is null and (lease_until is null or lease_until > :now)
        and coalesce(feed_reader.sequence, -1) < :sequence order by fence`)
      .pluck(),
    // Selects all rows before the first row to retain. Selecting rows by time alone could leave gaps if the clock was
    // set back.
    old: db.prepare<[{ before: number }], { last: number | null; count: number }>(`
      select max(sequence) as last, count(*) as count from feed
      where sequence < coalesce((select min(sequence) from feed where added_at >= :before), 9e15)`),
    notePruned: db.prepare<[{ sequence: number }]>('update feed_pruned set sequence = :sequence'),
    prune: db.prepare<[{ sequence: number }]>('delete from feed where sequence <= :sequence'),
  };
}
