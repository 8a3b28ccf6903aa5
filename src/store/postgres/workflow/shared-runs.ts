import { UNPAUSED } from '../../pause-conditions.ts';
import type {
  ClaimedRun,
  InboxRecord,
  RunNotice,
  RunOwner,
  RunRecord,
  SharedRunStore,
} from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import type { Sql } from '../named-sql.ts';
import { endDeadBoots } from './boots.ts';
import { endCrashed, recordCrash } from './crashes.ts';
import { IS_READY, tenantsWhere, WEIGHT } from './run-queue.ts';
import { RUN_COLUMNS, SELECT_RUN } from './run-rows.ts';
import { LIVE } from './schema.ts';

/** Time after its end during which a child is reported to its parent. The parent reads older children from the store. */
const CHILD_NEWS_MS = 3600_000;

/** SQL conditions for unclaimed runs of a queue, and their order within a tenant. */
const QUEUES = {
  ready: { which: IS_READY, order: 'rank desc, seq' },
  due: {
    which: `wake_at is not null and wake_at <= :now and fence is null and status in ('waiting', 'cancelling')
      and ${UNPAUSED}`,
    order: 'wake_at',
  },
} as const;

const TENANTS = {
  ready: IS_READY,
  due: `wake_at is not null and fence is null and ${UNPAUSED}`,
} as const;

const CLAIMS = { ready: claimStatement('ready'), due: claimStatement('due') } as const;

/**
 * Claims lock rows with `skip locked`, so that processes do not wait for each other. The claiming boot is locked too,
 * so that it cannot be declared dead before its claims are visible. `materialized` runs the subquery only once.
 */
function claimStatement(queue: keyof typeof QUEUES): string {
  const { which, order } = QUEUES[queue];
  return `with boot as materialized (
      select from svc.boot where fence = :fence and ended_at is null for share
    ), picked as materialized (
      select picked.seq from unnest(:tenants::text[], :limits::integer[]) with ordinality as share (tenant, most, place)
        cross join lateral (
          select seq from svc.run where tenant_id = share.tenant and ${which} and ${WEIGHT} < :crashes
          order by ${order} limit share.most for update skip locked
        ) as picked
      where exists (select from boot) order by share.place limit :limit
    )
    update svc.run set fence = :fence, notices_read = notices from picked where run.seq = picked.seq
    returning ${RUN_COLUMNS.replace('seq,', 'run.seq,')},
      started_at is null and rerun_of is null and not exists (select from svc.run_inbox where run_seq = run.seq)
        as "isFresh"`;
}

/** Claims runs for one of several processes, and passes requests to the process that executes a run. */
export class PostgresSharedRuns implements SharedRunStore {
  readonly #database: PostgresDatabase;

  constructor(database: PostgresDatabase) {
    this.#database = database;
  }

  tenants(queue: 'ready' | 'due'): Promise<string[]> {
    return this.#database.read((sql) => tenantsWhere(sql, TENANTS[queue]));
  }

  claim(
    fence: number,
    queue: 'ready' | 'due',
    { shares, limit, now, suspects }: Parameters<SharedRunStore['claim']>[2],
  ): Promise<ClaimedRun[]> {
    const tenants = shares.map(({ tenantId }) => tenantId);
    const limits = shares.map((share) => share.limit);
    return this.#database.read(async (sql) => {
      const rows = await sql<RunRecord & { isFresh: boolean }>(CLAIMS[queue], {
        ...{ fence, tenants, limits, limit, now },
        ...suspects,
      });
      return rows.map(({ isFresh, ...run }) => ({ run, isFresh }));
    });
  }

  async unclaim(fence: number, seqs: readonly number[]): Promise<void> {
    await this.#database.read((sql) =>
      sql(
        `update svc.run set fence = null
         where seq = any(:seqs) and fence = :fence and status in ('queued', 'waiting', 'cancelling')`,
        { fence, seqs },
      ),
    );
  }

  async unclaimExcept(fence: number, ids: readonly string[], now: number): Promise<void> {
    await this.#database.transact(async (sql) => {
      const lost = await sql<{ seq: number; status: string }>(
        'select seq, status from svc.run where fence = :fence and id <> all(:ids::text[]) for update',
        { fence, ids },
      );
      if (lost.length === 0) return;
      // A boot that has ended lets the next sweep interrupt these runs.
      await sql(
        `with ended as (
           insert into svc.boot (boot_id, pid, started_at, lease_until, ended_at, is_stopping)
           values ('lost claims', 0, :now, :now, :now, true) returning fence
         )
         update svc.run set fence = case when status in ('queued', 'waiting') then null else ended.fence end
         from ended where seq = any(:seqs)`,
        { now, seqs: lost.map(({ seq }) => seq) },
      );
    });
  }

  planned(now: number, limit: number): Promise<RunRecord[]> {
    return this.#database.read((sql) =>
      sql<RunRecord>(
        `${SELECT_RUN} where wake_at is not null and wake_at <= :now and status = 'queued' and fence is null
           and pause_scope is null
         order by wake_at limit :limit`,
        { now, limit },
      ),
    );
  }

  async requestCancel(seq: number): Promise<void> {
    await this.#database.read((sql) =>
      sql(`update svc.run set gives_way = true where seq = :seq and fence is not null and ${LIVE}`, { seq }),
    );
  }

  unread(fence: number, active: readonly number[], now: number): ReturnType<SharedRunStore['unread']> {
    return this.#database.read(async (sql) => {
      const held = await sql<{
        seq: number;
        id: string;
        count: number;
        isCancelled: boolean;
        isUnread: boolean;
        isPaused: boolean;
      }>(
        `select * from (
           select seq, id, notices as count, gives_way and status <> 'cancelling' as "isCancelled",
             notices > notices_read and seq = any(:active) as "isUnread",
             not ${UNPAUSED} and (status <> 'queued' or pause_scope = 'run') and seq = any(:active) as "isPaused"
           from svc.run where fence = :fence) as held
         where "isCancelled" or "isUnread" or "isPaused"`,
        { fence, active },
      );
      const cancelled = held.filter(({ isCancelled }) => isCancelled).map(({ id }) => id);
      const notices: RunNotice[] = [];
      for (const run of held) if (run.isUnread) notices.push(await readNotice(sql, run, now));
      const paused = new Set(held.filter(({ isPaused }) => isPaused).map(({ id }) => id));
      return { cancelled, paused, notices };
    });
  }

  async read(fence: number, notices: Parameters<SharedRunStore['read']>[1]): Promise<void> {
    const values = { seqs: notices.map(({ seq }) => seq), counts: notices.map(({ count }) => count) };
    await this.#database.transact(async (sql) => {
      // All statements lock runs in this order.
      await sql('select from svc.run where seq = any(:seqs::bigint[]) order by seq desc for update', values);
      await sql(
        `update svc.run set notices_read = greatest(notices_read, count)
         from unnest(:seqs::bigint[], :counts::integer[]) as notice (run_seq, count)
         where seq = run_seq and fence = :fence`,
        { fence, ...values },
      );
    });
  }

  ownerOf(fence: number): Promise<RunOwner | undefined> {
    return this.#database.read(async (sql) => {
      const [owner] = await sql<RunOwner>(
        `select m.fence as member, m.instance, m.url from svc.boot join svc.member m on m.fence = boot.member
         where boot.fence = :fence and m.ended_at is null`,
        { fence },
      );
      return owner;
    });
  }

  recordCrash(crash: Parameters<SharedRunStore['recordCrash']>[0]): Promise<void> {
    return this.#database.transact((sql) => recordCrash(sql, crash));
  }

  endCrashed(crash: Parameters<SharedRunStore['endCrashed']>[0]): Promise<void> {
    return this.#database.transact((sql) => endCrashed(sql, crash));
  }

  endDead(now: number): Promise<number> {
    return this.#database.read((sql) => endDeadBoots(sql, now));
  }
}

async function readNotice(
  sql: Sql,
  { seq, id, count }: Pick<RunNotice, 'seq' | 'id' | 'count'>,
  now: number,
): Promise<RunNotice> {
  const entries = await sql<InboxRecord>(
    `select n, kind, name, payload, at, sent_by as "sentBy", taken_by as "takenBy" from svc.run_inbox
     where run_seq = :seq and taken_by is null order by n`,
    { seq },
  );
  const children = await sql<{ id: string }>(
    'select id from svc.run where parent_id = :id and finished_at > :since',
    { id, since: now - CHILD_NEWS_MS },
  );
  return { seq, id, count, entries, endedChildren: children.map((child) => child.id) };
}
