import { sql as kyselySql, type Transaction } from 'kysely';
import type { Clock } from '../../../kit/time/clock.ts';
import type { FeedChange, FeedCursor, FeedPage, FeedStore, FeedTopic } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import { DATABASE_TIME, NOW } from '../database-clock.ts';
import type { Tables } from '../tables.ts';
import { OLDEST_RUNNING, TRANSACTION_ID } from '../transaction-ids.ts';

/**
 * Table of the change feed. A position starts with the transaction id, so that readers can stop before changes of
 * transactions that can still commit.
 */
export const FEED = `
  create table svc.feed (
    xact bigint not null,
    n bigint generated always as identity,
    topic text not null,
    key text not null,
    added_at bigint not null,
    primary key (xact, n)
  );
  create table svc.feed_pruned (xact bigint not null, n bigint not null);
  insert into svc.feed_pruned (xact, n) values (0, 0);
  alter table svc.member add column read_xact bigint, add column read_n bigint;`;

interface Position {
  xact: number;
  n: number;
}

type Row = { horizon: number; isPruned: boolean } & ({ xact: null } | (Position & FeedChange));

/** The change feed. A cursor is a transaction id with a number within the transaction. */
export class PostgresFeed implements FeedStore {
  readonly #database: PostgresDatabase;
  readonly #clock: Clock | undefined;

  /** `clock` replaces the clock of the database in tests. */
  constructor(database: PostgresDatabase, clock?: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Adds a change. Must be called in the transaction that makes the change. */
  async add(query: Transaction<Tables>, topic: FeedTopic, key: string): Promise<void> {
    const now = kyselySql`coalesce(${this.#now()}::bigint, ${kyselySql.raw(DATABASE_TIME)})`;
    await kyselySql`insert into svc.feed (xact, topic, key, added_at)
      values (${kyselySql.raw(TRANSACTION_ID)}, ${topic}, ${key}, ${now})`.execute(query);
  }

  async begin(): Promise<FeedCursor> {
    const [row] = await this.#run<{ xact: number }>(`select ${OLDEST_RUNNING} as xact`);
    return cursorOf({ xact: row!.xact, n: 0 });
  }

  async read(after: FeedCursor, limit: number): Promise<FeedPage> {
    const rows = await this.#run<Row>(READ, { ...positionOf(after), limit });
    const { horizon, isPruned } = rows[0]!;
    if (isPruned) return { changes: [], cursor: cursorOf({ xact: horizon, n: 0 }), isComplete: false };
    const found = rows.filter((row) => row.xact !== null);
    const last = found.at(-1);
    return {
      changes: found.map(({ topic, key }) => ({ topic, key })),
      cursor: last ? cursorOf(last) : after,
      isComplete: true,
    };
  }

  async latest(): Promise<FeedCursor> {
    const [row] = await this.#run<Position>(
      `(select xact, n from svc.feed order by xact desc, n desc limit 1) union all select xact, n from svc.feed_pruned
       order by xact desc, n desc limit 1`,
    );
    return cursorOf(row!);
  }

  async noteRead(fence: number, cursor: FeedCursor): Promise<void> {
    await this.#run('update svc.member set read_xact = :xact, read_n = :n where fence = :fence', {
      fence,
      ...positionOf(cursor),
    });
  }

  async behind(cursor: FeedCursor): Promise<number[]> {
    const rows = await this.#run<{ fence: number }>(
      `select fence from svc.member
       where kind = 'gateway' and ended_at is null and (lease_until is null or lease_until > ${NOW})
         and coalesce((read_xact, read_n) < (:xact::bigint, :n::bigint), true) order by fence`,
      positionOf(cursor),
    );
    return rows.map(({ fence }) => fence);
  }

  async prune(before: number, limit?: number): Promise<number> {
    const [row] = await this.#run<{ pruned: number }>(PRUNE, { before, limit: limit ?? null });
    return row!.pruned;
  }

  #run<Result extends object>(text: string, values: object = {}): Promise<Result[]> {
    return this.#database.read((sql) => sql<Result>(text, { ...values, now: this.#now() }));
  }

  #now(): number | null {
    return this.#clock?.now() ?? null;
  }
}

const cursorOf = ({ xact, n }: Position): FeedCursor => `${xact}.${n}` as FeedCursor;

function positionOf(cursor: FeedCursor): Position {
  const [xact, n] = cursor.split('.');
  return { xact: Number(xact), n: Number(n) };
}

/** Reads changes in a single statement, so that the changes and positions belong to one snapshot. */
const READ = `
  with bounds as materialized (
    select ${OLDEST_RUNNING} as horizon, (xact, n) > (:xact::bigint, :n::bigint) as is_pruned from svc.feed_pruned
  )
  select b.horizon, b.is_pruned as "isPruned", f.* from bounds b left join lateral (
    select xact, n, topic, key from svc.feed
    where not b.is_pruned and (xact, n) > (:xact::bigint, :n::bigint) and xact < b.horizon
    order by xact, n limit :limit
  ) f on true order by f.xact, f.n`;

/**
 * Deletes all changes before the first recent change. Deleting by time alone could leave gaps between changes if the
 * clock was set back.
 */
const PRUNE = `
  with kept as materialized (
    select xact, n from svc.feed where added_at >= :before order by xact, n limit 1
  ), gone as (
    delete from svc.feed where ctid = any(array(
      select ctid from svc.feed
      where xact < ${OLDEST_RUNNING} and coalesce((xact, n) < (select xact, n from kept), true)
      order by xact, n limit :limit
    )) returning xact, n
  ), last as (
    select xact, n from gone order by xact desc, n desc limit 1
  ), noted as (
    update svc.feed_pruned p set xact = last.xact, n = last.n from last where (p.xact, p.n) < (last.xact, last.n)
  )
  select count(*) as pruned from gone`;
