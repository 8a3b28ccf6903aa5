import type { SharedRunStore } from '../../ports/index.ts';
import { DATABASE_TIME } from '../database-clock.ts';
import type { Sql } from '../named-sql.ts';
import { BLAMED } from './schema.ts';

/**
 * Records a crash of the last process of a node. If another node has already ended this process, it has counted kills
 * for its runs. These kills become crashes.
 */
export async function recordCrash(
  sql: Sql,
  crash: Parameters<SharedRunStore['recordCrash']>[0],
): Promise<void> {
  const [boot] = await sql<{ fence: number }>(
    `update svc.boot set had_fault = true
     where fence = (select max(fence) from svc.boot where instance = :instance) and not had_fault and not is_stopping
       and (:hadFault::boolean or coalesce(oom_kills < :oomKills::bigint, false))
     returning fence`,
    crash,
  );
  if (!boot) return;
  await sql(
    `update svc.run set crashes = crashes + 1, kills = kills - 1, killed_by = array_remove(killed_by, :fence::bigint)
     where ${BLAMED} and kills > 0 and :fence::bigint = any(killed_by)`,
    boot,
  );
}

/** Records the crash of a process, unless the node has a newer one, and ends its member. */
export async function endCrashed(
  sql: Sql,
  crash: Parameters<SharedRunStore['endCrashed']>[0],
): Promise<void> {
  const [boot] = await sql<{ member: number | null; pid: number }>(
    'select member, pid from svc.boot where instance = :instance order by fence desc limit 1 for update',
    crash,
  );
  if (boot?.pid !== crash.pid) return;
  await recordCrash(sql, crash);
  await sql(
    `update svc.member set ended_at = ${DATABASE_TIME} where fence = :member and ended_at is null`,
    boot,
  );
}
