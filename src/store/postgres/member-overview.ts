import type { ServiceName } from '../../contracts/index.ts';
import type { PostgresDatabase } from './database.ts';
import { DATABASE_TIME } from './database-clock.ts';
import { isIn } from './transaction-ids.ts';

/** State of one service process, as shown to operators. */
export interface MemberOverview {
  instance: string;
  kind: ServiceName;
  url: string | null;
  version: string;
  /** Newest schema version that the member knows. Null for members that do not report it. */
  schema: number | null;
  /** Digest of the member's config or project. Each kind of service defines its own digest. */
  release: string | null;
  /** Time until the lease ends, in ms. Negative after the lease has expired. */
  leaseLeftMs: number | null;
  /**
   * Age in ms of the oldest change that the member has not read. The age is 0 if all changes are read, and null if the
   * member reads no changes.
   */
  feedLagMs: number | null;
}

/** SQL for a column that does not exist before `svc migrate`. The value is null until then. */
const columnOf = (name: string): string => `(to_jsonb(m) ->> '${name}')`;

const READ_SNAPSHOT = `${columnOf('read_snapshot')}::pg_snapshot`;

/** Returns the members that have not ended, including members with an expired lease. */
export async function memberOverview(database: PostgresDatabase): Promise<MemberOverview[]> {
  const { rows } = await database.sql<MemberOverview & object>(
    `select m.instance, m.kind, m.url, m.version, ${columnOf('schema')}::integer as schema, m.release,
        m.lease_until - ${DATABASE_TIME} as "leaseLeftMs",
       case when m.read_xact is not null then coalesce((
         select greatest(0, ${DATABASE_TIME} - min(f.added_at)) from svc.feed f
         where (f.xact, f.n) > (m.read_xact, m.read_n)
           and not coalesce(${isIn(READ_SNAPSHOT, 'f.xact')}, false)), 0) end as "feedLagMs"
     from svc.member m where m.ended_at is null order by m.instance, m.kind, m.fence`,
  );
  return rows;
}
