import type { ScheduleClaim, ScheduleRecord, ScheduleSource, ScheduleStore } from '../../ports/index.ts';
import {
  ALONE,
  MAX_ABSENT_MS,
  type SchedulePlan,
  type ScheduleRegistration,
  scheduleChanges,
  viewSchedules,
} from '../../schedule-sync.ts';
import type { PostgresDatabase } from '../database.ts';
import { hasNoOwner, UNENDED_FENCES } from '../members.ts';
import { lockName } from '../named-lock.ts';
import type { Sql } from '../named-sql.ts';

const COLUMNS = `id, tenant_id as "tenantId", workflow_id as "workflowId", cron, timezone, overlap,
  catch_up as "catchUp", input, paused, next_at as "nextAt", last_at as "lastAt", last_run_id as "lastRunId"`;
const SELECT = `select ${COLUMNS} from svc.schedule`;
const IS_DUE = 'not paused and absent_since is null and next_at <= :now';

/**
 * Recomputes the due time of new, changed and reactivated schedules. An unchanged schedule keeps its stored due time.
 * If the stored time is later than the computed time, the clock was set back, and the computed time replaces the stored
 * time.
 */
const PUT = `insert into svc.schedule as s (id, tenant_id, workflow_id, cron, timezone, overlap, catch_up, input, paused,
    next_at)
  values (:id, :tenantId, :workflowId, :cron, :timezone, :overlap, :catchUp, :input, false, :nextAt)
  on conflict (id) do update set workflow_id = excluded.workflow_id, overlap = excluded.overlap,
    catch_up = excluded.catch_up, input = excluded.input,
    next_at = case when s.paused or (s.absent_since is null and s.cron = excluded.cron and s.timezone = excluded.timezone
        and (excluded.next_at is null or s.next_at <= excluded.next_at))
      then s.next_at else excluded.next_at end,
    absent_since = null, cron = excluded.cron, timezone = excluded.timezone`;

/** Store of schedules. Schedules whose workflow or plugin is not loaded are kept, but inactive. */
export function postgresSchedules(database: PostgresDatabase): ScheduleStore {
  return {
    sync: (schedules, owners, now, node) =>
      database.transact(async (sql) => {
        await lockName(sql, 'schedules');
        const stored = await sql<ScheduleRecord>(SELECT);
        const view = node ? viewSchedules(await sql<ScheduleRegistration>(REGISTERED), node) : ALONE;
        const { elsewhere, newer } = view;
        const { renamed, removed, deactivated } = scheduleChanges(stored, schedules, { owners, elsewhere });
        for (const change of renamed) await sql('update svc.schedule set id = :to where id = :from', change);
        for (const schedule of schedules) if (!newer.has(schedule.id)) await sql(PUT, schedule);
        await sql('delete from svc.schedule where id = any(:removed)', { removed });
        await sql(
          `update svc.schedule set next_at = null, absent_since = coalesce(absent_since, :now)
           where id = any(:deactivated)`,
          { deactivated, now },
        );
        await sql('delete from svc.schedule where absent_since < :before', { before: now - MAX_ABSENT_MS });
        if (node) await register(sql, schedules, { ...node, releaseOrder: view.releaseOrder });
      }),
    list: (tenantId) =>
      database.read((sql) =>
        sql<ScheduleRecord>(`${SELECT} where tenant_id = :tenantId and absent_since is null order by id`, {
          tenantId,
        }),
      ),
    find: (tenantId, id) =>
      database.read(async (sql) => {
        const [schedule] = await sql<ScheduleRecord>(
          `${SELECT} where id = :id and tenant_id = :tenantId and absent_since is null`,
          { id, tenantId },
        );
        return schedule;
      }),
    due: (now, claim) =>
      database.read((sql) =>
        claim
          ? claimDue(sql, now, claim)
          : sql<ScheduleRecord>(`${SELECT} where ${IS_DUE} order by next_at`, { now }),
      ),
    nextAt: (now) =>
      database.read(async (sql) => {
        const [row] = await sql<{ at: number | null }>(
          `select min(next_at) as at from svc.schedule
           where not paused and absent_since is null and next_at > :now`,
          { now },
        );
        return row?.at ?? null;
      }),
    async served(id, { missed, ...times }, fence) {
      await database.read((sql) =>
        sql(SERVED, { id, ...times, fence: fence ?? null, ...(missed ?? NO_FACT) }),
      );
    },
    async setPaused(id, paused, nextAt) {
      await database.read((sql) =>
        sql('update svc.schedule set paused = :paused, next_at = :nextAt where id = :id', {
          id,
          paused,
          nextAt,
        }),
      );
    },
  };
}

const NO_FACT = { kind: null, namespaceId: null, objectId: null, body: null, at: null };

/** A missed time is recorded together with the next one, unless another member has claimed the schedule. */
const SERVED = `
  with served as (
    update svc.schedule set next_at = :nextAt, last_at = coalesce(:lastAt, last_at),
      last_run_id = coalesce(:lastRunId, last_run_id), claimed_by = null
    where id = :id and (:fence::bigint is null or claimed_by = :fence) returning id
  )
  insert into svc.alert_fact (kind, namespace_id, object_id, body, at)
  select :kind::text, :namespaceId::text, :objectId::text, :body::text, :at::bigint from served where :kind::text is not null`;

/** Claims the due schedules that no other live member has claimed. */
async function claimDue(
  sql: Sql,
  now: number,
  { fence, workflows }: ScheduleClaim,
): Promise<ScheduleRecord[]> {
  const claimed = await sql<ScheduleRecord>(
    `with picked as materialized (
       select id as picked_id from svc.schedule
       where ${IS_DUE} and workflow_id = any(:workflows)
         and (claimed_by is null or claimed_by = :fence or ${hasNoOwner('claimed_by')})
       for update skip locked
     )
     update svc.schedule set claimed_by = :fence from picked where id = picked_id returning ${COLUMNS}`,
    { now, fence, workflows },
  );
  return claimed.toSorted((a, b) => (a.nextAt ?? 0) - (b.nextAt ?? 0));
}

const REGISTERED = `select schedule_id as id, instance, release, release_order as "releaseOrder",
  fence in (${UNENDED_FENCES}) as "isLive" from svc.schedule_node`;

/** Stores the ids of the schedules that the node has registered. */
async function register(
  sql: Sql,
  schedules: readonly SchedulePlan[],
  source: ScheduleSource & Pick<ScheduleRegistration, 'releaseOrder'>,
): Promise<void> {
  await sql('delete from svc.schedule_node where instance = :instance', {
    instance: source.instance,
  });
  await sql(
    `insert into svc.schedule_node (schedule_id, instance, fence, release, release_order)
     select unnest(:ids::text[]), :instance, :fence::bigint, :release, :releaseOrder::bigint`,
    { ids: schedules.map(({ id }) => id), ...source },
  );
  await sql('delete from svc.schedule_node where schedule_id not in (select id from svc.schedule)');
}
