import type {
  ScheduleNode,
  ScheduleOwners,
  ScheduleRecord,
  ScheduleSource,
  ScheduleStore,
} from '../../ports/index.ts';
import {
  ALONE,
  MAX_ABSENT_MS,
  type SchedulePlan,
  type ScheduleRegistration,
  type ScheduleView,
  scheduleChanges,
  viewSchedules,
} from '../../schedule-sync.ts';
import type { Database } from '../database.ts';
import { UNENDED_FENCES } from '../members.ts';
import { factWriter } from './alert-facts.ts';

type Source = ScheduleSource & Pick<ScheduleRegistration, 'releaseOrder'>;
type Row = Omit<ScheduleRecord, 'paused'> & { paused: 0 | 1 };

/** Store of schedules. Schedules whose workflow or plugin is not loaded are kept, but inactive. */
export function sqliteSchedules(db: Database): ScheduleStore {
  const sql = { ...statements(db), ...nodeStatements(db) };
  const addFact = factWriter(db);
  return {
    async sync(schedules, owners, now, node) {
      await db.write(() => {
        const view = node ? viewSchedules(registrations(sql), node) : ALONE;
        syncSchedules(sql, schedules, { owners, now, view });
        if (node) registerSchedules(sql, schedules, { ...node, releaseOrder: view.releaseOrder });
      });
    },
    list: (tenantId) => db.read(() => sql.ofTenant.all({ tenantId }).map(recordOf)),
    find: (tenantId, id) =>
      db.read(() => {
        const row = sql.find.get({ tenantId, id });
        return row && recordOf(row);
      }),
    due: (now) => db.read(() => sql.due.all({ now }).map(recordOf)),
    nextAt: (now) => db.read(() => sql.nextAt.get({ now }) ?? null),
    async served(id, { missed, ...times }) {
      await db.write(() => {
        sql.served.run({ id, ...times });
        if (missed) addFact(missed);
      });
    },
    async setPaused(id, paused, next) {
      await db.write(() => sql.setPaused.run({ id, paused: paused ? 1 : 0, nextAt: next }));
    },
  };
}

function recordOf(row: Row): ScheduleRecord {
  return { ...row, paused: row.paused === 1 };
}

function syncSchedules(
  sql: Statements,
  schedules: readonly SchedulePlan[],
  { owners, now, view }: { owners: ScheduleOwners; now: number; view: ScheduleView },
): void {
  const { elsewhere, newer } = view;
  const changes = scheduleChanges(sql.all.all(), schedules, { owners, elsewhere });
  for (const change of changes.renamed) sql.rename.run(change);
  for (const schedule of schedules) if (!newer.has(schedule.id)) sql.put.run(schedule);
  for (const id of changes.removed) sql.remove.run({ id });
  for (const id of changes.deactivated) sql.deactivate.run({ id, now });
  sql.prune.run({ before: now - MAX_ABSENT_MS });
}

function registrations(sql: Statements): ScheduleRegistration[] {
  return sql.registered.all().map((row) => ({ ...row, isLive: row.isLive === 1 }));
}

/** Stores the ids of the schedules that the node has registered. */
function registerSchedules(sql: Statements, schedules: readonly SchedulePlan[], source: Source): void {
  sql.unregister.run(source);
  for (const { id } of schedules) sql.register.run({ ...source, id });
  sql.dropRegistrations.run();
}

type Statements = ReturnType<typeof statements> & ReturnType<typeof nodeStatements>;

function nodeStatements(db: Database) {
  return {
    registered: db.prepare<[], Omit<ScheduleRegistration, 'isLive'> & { isLive: 0 | 1 }>(`
      select schedule_id as id, instance, release, release_order as releaseOrder,
        fence in (${UNENDED_FENCES}) as isLive from schedule_node`),
    unregister: db.prepare<[ScheduleNode]>('delete from schedule_node where instance = :instance'),
    register: db.prepare<[Source & { id: string }]>(`
      insert into schedule_node (schedule_id, instance, fence, release, release_order)
      values (:id, :instance, :fence, :release, :releaseOrder)`),
    dropRegistrations: db.prepare<[]>(
      'delete from schedule_node where schedule_id not in (select id from schedule)',
    ),
  };
}

function statements(db: Database) {
  const columns = `id, tenant_id as tenantId, workflow_id as workflowId, cron, timezone, overlap, catch_up as catchUp, input,
    paused, next_at as nextAt, last_at as lastAt, last_run_id as lastRunId`;
  return {
    all: db.prepare<[], Row>(`select ${columns} from schedule`),
    rename: db.prepare<[{ from: string; to: string }]>('update schedule set id = :to where id = :from'),
    remove: db.prepare<[{ id: string }]>('delete from schedule where id = :id'),
    deactivate: db.prepare<[{ id: string; now: number }]>(
      'update schedule set next_at = null, absent_since = coalesce(absent_since, :now) where id = :id',
    ),
    prune: db.prepare<[{ before: number }]>('delete from schedule where absent_since < :before'),
    // Recomputes the due time of changed and reactivated schedules. An unchanged schedule keeps its stored due time. If
    // the stored time is later than the computed time, the clock was set back, and the computed time replaces the
    // stored time.
    put: db.prepare<[SchedulePlan]>(`
    insert into schedule (id, tenant_id, workflow_id, cron, timezone, overlap, catch_up, input, paused, next_at)
    values (:id, :tenantId, :workflowId, :cron, :timezone, :overlap, :catchUp, :input, 0, :nextAt)
    on conflict (id) do update set workflow_id = excluded.workflow_id, overlap = excluded.overlap,
      catch_up = excluded.catch_up, input = excluded.input,
      next_at = case when paused = 1 or (absent_since is null and cron = excluded.cron and timezone = excluded.timezone
          and (excluded.next_at is null or next_at <= excluded.next_at))
        then next_at else excluded.next_at end,
      absent_since = null,
      cron = excluded.cron, timezone = excluded.timezone`),
    ofTenant: db.prepare<[{ tenantId: string }], Row>(
      `select ${columns} from schedule where tenant_id = :tenantId and absent_since is null order by id`,
    ),
    find: db.prepare<[{ tenantId: string; id: string }], Row>(
      `select ${columns} from schedule where id = :id and tenant_id = :tenantId and absent_since is null`,
    ),
    due: db.prepare<[{ now: number }], Row>(
      `select ${columns} from schedule where paused = 0 and absent_since is null and next_at <= :now order by next_at`,
    ),
    nextAt: db
      .prepare<[{ now: number }], number | null>(
        'select min(next_at) from schedule where paused = 0 and absent_since is null and next_at > :now',
      )
      .pluck(),
    served: db.prepare<
      [{ id: string; nextAt: number | null; lastAt: number | null; lastRunId: string | null }]
    >(`
    update schedule set next_at = :nextAt, last_at = coalesce(:lastAt, last_at),
      last_run_id = coalesce(:lastRunId, last_run_id)
    where id = :id`),
    setPaused: db.prepare<[{ id: string; paused: 0 | 1; nextAt: number | null }]>(
      'update schedule set paused = :paused, next_at = :nextAt where id = :id',
    ),
  };
}
