import type { BootStore, IsPoison, RunRecord } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import type { Sql } from '../named-sql.ts';
import { interruptRun, resumeRun } from './interruptions.ts';
import { SELECT_RUN } from './run-rows.ts';
import { LIVE } from './schema.ts';

/**
 * SQL that extends a time limit by the downtime, which begins at `aliveAt`. A time limit that began during the downtime
 * restarts in full.
 */
const MOVED_LIMIT =
  'ending_at = ending_at + greatest(0, :now::bigint - greatest(:aliveAt::bigint, ending_at))';

const DEAD_FENCES = 'select fence from svc.boot where ended_at is not null';

/** SQL condition for boots whose member has ended. A boot of an older version has no member, but a lease. */
const IS_DEAD = `case when member is null then lease_until < :now
  else not exists (select from svc.member m where m.fence = boot.member and m.ended_at is null) end`;

/** Declares the boots of ended members dead. Returns the number of these boots. */
export async function endDeadBoots(sql: Sql, now: number): Promise<number> {
  const ended = await sql(
    `update svc.boot set ended_at = :now where ended_at is null and ${IS_DEAD} returning fence`,
    { now },
  );
  return ended.length;
}

/**
 * Boot records, and recovery of runs whose owner is dead. A boot is a start of the service. @spec Workflow run:
 * interrupted
 */
export class PostgresBoots implements BootStore {
  readonly #database: PostgresDatabase;

  constructor(database: PostgresDatabase) {
    this.#database = database;
  }

  begin({ member, ...boot }: Parameters<BootStore['begin']>[0]): Promise<number> {
    const values = { ...boot, member: member?.fence ?? null, instance: member?.instance ?? null };
    return this.#database.transact(async (sql) => {
      // A risen OOM kill count means that a process was killed for lack of memory. A lower count shows only that the
      // machine has rebooted, because the kernel restarts the count at boot.
      // This process knows the fault and the count of its own node only.
      await sql(
        `update svc.boot set ended_at = :now,
           had_fault = had_fault or instance is not distinct from :instance::text
             and (:hadFault::boolean or coalesce(oom_kills < :oomKills::bigint, false))
         where ended_at is null and (:exclusive::boolean or ${IS_DEAD})`,
        values,
      );
      const [row] = await sql<{ fence: number }>(
        `insert into svc.boot (boot_id, pid, started_at, lease_until, oom_kills, member, instance)
         values (:bootId, :pid, :now, :leaseUntil, :oomKills, :member, :instance) returning fence`,
        { ...values, leaseUntil: boot.now + boot.leaseMs },
      );
      return row!.fence;
    });
  }

  renew(fence: number, lease: { leaseUntil: number; oomKills: number | null }): Promise<boolean> {
    return this.#database.reserved.read(async (sql) => {
      const renewed = await sql(
        `update svc.boot set lease_until = :leaseUntil, oom_kills = :oomKills
         where fence = :fence and ended_at is null returning fence`,
        { fence, ...lease },
      );
      return renewed.length === 1;
    });
  }

  async stopping(fence: number): Promise<void> {
    await this.#database.read((sql) =>
      sql('update svc.boot set is_stopping = true where fence = :fence', { fence }),
    );
  }

  async end(fence: number, now: number): Promise<void> {
    await this.#database.read((sql) =>
      sql('update svc.boot set ended_at = :now where fence = :fence and ended_at is null', { fence, now }),
    );
  }

  interrupt(now: number, limit: number, isPoison: IsPoison): Promise<RunRecord[]> {
    return this.#database.transact(async (sql) => {
      // `recordCrash` locks in the same order: first the boot, then its runs.
      await sql(
        `select from svc.boot
         where ended_at is not null and fence in (select fence from svc.run where fence is not null)
         order by fence for share`,
      );
      // Claimed runs that their dead owner had not started are given back.
      await sql(
        `update svc.run set fence = null
         where fence in (${DEAD_FENCES}) and status in ('queued', 'waiting')`,
      );
      const orphans = await sql<RunRecord>(
        `${SELECT_RUN}
         where fence is not null and fence in (${DEAD_FENCES})
         order by seq limit :limit for update skip locked`,
        { limit },
      );
      const interrupted: RunRecord[] = [];
      for (const run of orphans) interrupted.push(await interruptRun(sql, run, now, isPoison));
      return interrupted;
    });
  }

  resume(now: number, limit: number, isPoison: IsPoison): Promise<RunRecord[]> {
    return this.#database.transact(async (sql) => {
      const runs = await sql<RunRecord>(
        `${SELECT_RUN} where status = 'interrupted' order by seq limit :limit for update skip locked`,
        { limit },
      );
      const resumed: RunRecord[] = [];
      for (const run of runs) resumed.push(await resumeRun(sql, run, now, isPoison));
      return resumed;
    });
  }

  lastAlive(leaseMs: number): Promise<number | null> {
    return this.#database.read(async (sql) => {
      const [row] = await sql<{ at: number | null }>(
        `select max(case when ended_at is null then lease_until - :leaseMs::bigint else ended_at end) as at
         from svc.boot`,
        { leaseMs },
      );
      return row?.at ?? null;
    });
  }

  resumeCleanUps({ aliveAt, now, wakeAt }: Parameters<BootStore['resumeCleanUps']>[0]): Promise<void> {
    return this.#database.transact(async (sql) => {
      // The condition `LIVE` lets the query use an index. The condition `status = 'cancelling'` alone would scan every
      // run.
      const idle = `${LIVE} and status = 'cancelling' and fence is null`;
      await sql(`update svc.run set wake_at = :wakeAt where ${idle}`, { wakeAt });
      const times = { aliveAt, now };
      await sql(`update svc.run set ${MOVED_LIMIT} where ${idle} and ending_held_at is null`, times);
      await sql(
        `update svc.job set ${MOVED_LIMIT}
         where ending_at is not null and finished_at is null and ending_held_at is null
           and exists (select from svc.run where seq = run_seq and fence is null)`,
        times,
      );
    });
  }

  leftToCancel(): Promise<string[]> {
    return this.#database.read(async (sql) => {
      const rows = await sql<{ id: string }>(
        `select child.id from svc.run child join svc.run parent on parent.id = child.parent_id
         where parent.finished_at is not null and child.${LIVE} and child.parent_id is not null
         union all
         select id from svc.run where gives_way and ${LIVE}`,
      );
      return rows.map(({ id }) => id);
    });
  }
}
