import { sql as kyselySql, type Transaction } from 'kysely';
import type { Clock } from '../../../kit/time/clock.ts';
import type { FeedChange, FeedCursor, FeedPage, FeedStore, FeedTopic } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import { DATABASE_TIME, NOW } from '../database-clock.ts';
import type { Tables } from '../tables.ts';
import { isIn, OLDEST_RUNNING, oldestRunningIn, TRANSACTION_ID } from '../transaction-ids.ts';

/** Tables of the change feed. A change has the id of its transaction and a number within the transaction. */
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

/**
 * Snapshot that contains all changes that a member has read. The older columns remain for members of earlier versions,
 * which compare positions.
 */
export const FEED_SNAPSHOTS = 'alter table svc.member add column read_snapshot pg_snapshot;';

interface Position {
  xact: number;
  n: number;
}

interface Bounds {
  /** Snapshot of the first page. Further pages belong to the same snapshot. */
  upper: string;
  isPruned: boolean;
}

type Row = Bounds & ({ xact: null } | (Position & FeedChange));

/**
 * The change feed. A cursor is the snapshot whose changes are read. Between two pages of a read, the cursor also contains
 * the snapshot of that read and the position of the last change.
 */
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
    return this.latest();
  }

  async read(after: FeedCursor, limit: number): Promise<FeedPage> {
    const { read, upper, last } = partsOf(after);
    const rows = await this.#run<Row>(READ, { read, upper, ...last, limit });
    const found = rows.filter((row) => row.xact !== null);
    const bounds = rows[0]!;
    const now = cursorOf({ read: bounds.upper });
    if (bounds.isPruned) return { changes: [], cursor: now, isComplete: false };
    const isPage = found.length === limit;
    const next = isPage ? cursorOf({ read, upper: bounds.upper, last: found.at(-1)! }) : now;
    return {
      changes: found.map(({ topic, key }) => ({ topic, key })),
      // The cursor stays the same without changes, so that members need not note a new one.
      cursor: found.length > 0 || upper !== null ? next : after,
      isComplete: true,
    };
  }

  async latest(): Promise<FeedCursor> {
    const [row] = await this.#run<{ read: string }>('select pg_current_snapshot()::text as read');
    return cursorOf(row!);
  }

  async noteRead(fence: number, cursor: FeedCursor): Promise<void> {
    await this.#run(
      `update svc.member set read_snapshot = :read::pg_snapshot, read_xact = ${oldestRunningIn(':read::pg_snapshot')},
         read_n = 0
       where fence = :fence`,
      { fence, read: partsOf(cursor).read },
    );
  }

  async behind(cursor: FeedCursor): Promise<number[]> {
    const rows = await this.#run<{ fence: number }>(BEHIND, { mark: partsOf(cursor).read });
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

interface CursorParts {
  /** Snapshot whose changes are read. */
  read: string;
  /** Snapshot up to which the current read goes. */
  upper?: string;
  /** Last change of the previous page. */
  last?: Position;
}

const cursorOf = ({ read, upper, last }: CursorParts): FeedCursor =>
  (upper === undefined ? read : `${read} ${upper} ${last!.xact} ${last!.n}`) as FeedCursor;

function partsOf(cursor: FeedCursor): { read: string; upper: string | null; last: Position } {
  const [read, upper = null, xact = 0, n = 0] = cursor.split(' ') as [string, string?, string?, string?];
  return { read, upper, last: { xact: Number(xact), n: Number(n) } };
}

/** Reads changes in a single statement, so that the changes and the bounds belong to one snapshot. */
const READ = `
  with bounds as materialized (
    select coalesce(:upper::pg_snapshot, pg_current_snapshot()) as upper,
      xact >= ${oldestRunningIn(':read::pg_snapshot')} as is_pruned from svc.feed_pruned
  )
  select b.upper::text as upper, b.is_pruned as "isPruned", f.* from bounds b left join lateral (
    select xact, n, topic, key from svc.feed
    where not b.is_pruned and xact >= ${oldestRunningIn(':read::pg_snapshot')}
      and (xact, n) > (:xact::bigint, :n::bigint)
      and not ${isIn(':read::pg_snapshot', 'xact')} and ${isIn('b.upper', 'xact')}
    order by xact, n limit :limit
  ) f on true order by f.xact, f.n`;

/** Selects the members that have not read a change of the snapshot `:mark`. */
const BEHIND = `
  select m.fence from svc.member m
  where m.kind = 'gateway' and m.ended_at is null and (m.lease_until is null or m.lease_until > ${NOW})
    and case
      when m.read_snapshot is not null then exists (
        select from svc.feed f where f.xact >= ${oldestRunningIn('m.read_snapshot')}
          and not ${isIn('m.read_snapshot', 'f.xact')} and ${isIn(':mark::pg_snapshot', 'f.xact')})
      when m.read_xact is not null then exists (
        select from svc.feed f where (f.xact, f.n) > (m.read_xact, m.read_n)
          and ${isIn(':mark::pg_snapshot', 'f.xact')})
      else true
    end
  order by m.fence`;

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
