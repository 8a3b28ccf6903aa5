import type { BootStore } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { LIVE } from './conditions.ts';
import { Interruptions } from './interruptions.ts';
import { RUN_COLUMNS, type RunRow } from './run-rows.ts';
import type { WorkflowTables } from './tables.ts';

/**
 * SQL that extends the time limit of a clean-up by the downtime, which begins at `aliveAt`. A time limit that began
 * during the downtime restarts in full.
 */
const MOVED_LIMIT = 'ending_at = ending_at + max(0, :now - max(:aliveAt, ending_at))';

/**
 * Store of workflow service processes (`boot` rows). Marks dead processes and recovers the runs that these processes
 * owned. @spec Workflow run: interrupted
 */
export function sqliteBoots(tables: WorkflowTables): BootStore {
  const { db } = tables;
  const sql = statements(db);
  const interruptions = new Interruptions(tables);
  return {
    begin: ({ bootId, pid, now, leaseMs, exclusive, hadFault, oomKills }) =>
      db.write(() => {
        sql.declareDead.run({ now, exclusive: exclusive ? 1 : 0, hadFault: hadFault ? 1 : 0, oomKills });
        return Number(
          sql.begin.run({ bootId, pid, now, leaseUntil: now + leaseMs, oomKills }).lastInsertRowid,
        );
      }),
    renew: (fence, lease) => db.write(() => sql.renew.run({ fence, ...lease }).changes === 1),
    async stopping(fence) {
      await db.write(() => sql.stopping.run({ fence }));
    },
    async end(fence, now) {
      await db.write(() => sql.end.run({ fence, now }));
    },
    interrupt: (now, limit, isPoison) =>
      db.write(() => sql.orphans.all({ limit }).map((row) => interruptions.interrupt(row, now, isPoison))),
    resume: (now, limit, isPoison) =>
      db.write(() => sql.interrupted.all({ limit }).map((row) => interruptions.resume(row, now, isPoison))),
    lastAlive: (leaseMs) => db.read(() => sql.lastAlive.get({ leaseMs }) ?? null),
    async resumeCleanUps({ aliveAt, now, wakeAt }) {
      await db.write(() => {
        sql.wakeCleanUps.run({ wakeAt });
        for (const move of sql.moveLimits) move.run({ aliveAt, now });
      });
    },
    leftToCancel: () => db.read(() => sql.leftToCancel.all()),
  };
}

function statements(db: Database) {
  return {
    // A risen OOM kill count means that a process was killed for lack of memory. A lower count shows only that the
    // machine has rebooted, because the kernel restarts the count at boot.
    declareDead: db.prepare<[{ now: number; exclusive: 0 | 1; hadFault: 0 | 1; oomKills: number | null }]>(`
      update boot set ended_at = :now, had_fault = :hadFault = 1 or coalesce(oom_kills < :oomKills, 0)
      where ended_at is null and (:exclusive = 1 or lease_until < :now)`),
    begin: db.prepare<
      [{ bootId: string; pid: number; now: number; leaseUntil: number; oomKills: number | null }]
    >(`
      insert into boot (boot_id, pid, started_at, lease_until, oom_kills)
      values (:bootId, :pid, :now, :leaseUntil, :oomKills)`),
    renew: db.prepare<[{ fence: number; leaseUntil: number; oomKills: number | null }]>(`
      update boot set lease_until = :leaseUntil, oom_kills = :oomKills where fence = :fence and ended_at is null`),
    stopping: db.prepare<[{ fence: number }]>('update boot set is_stopping = 1 where fence = :fence'),
    end: db.prepare<[{ fence: number; now: number }]>(
      'update boot set ended_at = :now where fence = :fence and ended_at is null',
    ),
    orphans: db.prepare<[{ limit: number }], RunRow>(`
      select ${RUN_COLUMNS} from run
      where fence is not null and fence in (select fence from boot where ended_at is not null) order by seq limit :limit`),
    interrupted: db.prepare<[{ limit: number }], RunRow>(
      `select ${RUN_COLUMNS} from run where status = 'interrupted' order by seq limit :limit`,
    ),
    leftToCancel: db
      .prepare<[], string>(`
        select id from run where parent_id is not null and ${LIVE} and
          (select parent.finished_at from run parent where parent.id = run.parent_id) is not null
        union all
        select id from run where gives_way = 1 and ${LIVE}`)
      .pluck(),
    lastAlive: db
      .prepare<[{ leaseMs: number }], number | null>(
        'select max(case when ended_at is null then lease_until - :leaseMs else ended_at end) from boot',
      )
      .pluck(),
    // The `LIVE` condition lets SQLite use a partial index. Otherwise, the query would scan all runs.
    wakeCleanUps: db.prepare<[{ wakeAt: number }]>(
      `update run set wake_at = :wakeAt where ${LIVE} and status = 'cancelling' and fence is null`,
    ),
    moveLimits: [
      `update run set ${MOVED_LIMIT} where ${LIVE} and status = 'cancelling' and fence is null and ending_held_at is null`,
      `update job set ${MOVED_LIMIT} where ending_at is not null and finished_at is null and ending_held_at is null
        and exists (select 1 from run where seq = run_seq and fence is null)`,
    ].map((sql) => db.prepare<[{ aliveAt: number; now: number }]>(sql)),
  };
}
