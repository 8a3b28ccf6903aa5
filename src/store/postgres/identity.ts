import { PlatformError } from '../../kit/errors/errors.ts';
import type { PostgresDatabase } from './database.ts';
import { DATABASE_TIME } from './database-clock.ts';
import { POSITIONS_PER_TRANSACTION } from './gateway/inbox/schema.ts';

/**
 * Lets positions continue above all stored ones, because the transaction ids of another server start again. Changes
 * nothing in a database that was never restored.
 */
const RAISE_POSITIONS = `
  update svc.position_origin set added = greatest(added, highest.xact + 1 - pg_current_xact_id()::text::bigint)
  from (select greatest(
    (select max(position) / ${POSITIONS_PER_TRANSACTION} from svc.delivery),
    (select max(position) / ${POSITIONS_PER_TRANSACTION} from svc.delivery_body),
    (select max(xact) from svc.feed), (select max(xact) from svc.feed_pruned),
    (select max(read_xact) from svc.member), 0) as xact) as highest`;

/**
 * The identity of the database: the id of its server and its own number there. Standbys have the identity of their
 * primary, but a restored dump and a clone have another one. Some hosting providers hide the id of the server.
 * @spec docs/decisions/0226
 */
export const DATABASE_IDENTITY = `
  create function svc.database_identity() returns text language plpgsql as $$
  declare
    server text := 'unknown';
  begin
    begin
      select system_identifier into server from pg_control_system();
    exception when insufficient_privilege then
      null;
    end;
    return server || '/' || (select oid from pg_database where datname = current_database());
  end $$;
  create table svc.home_database (identity text not null);
  insert into svc.home_database (identity) select svc.database_identity();
  ${RAISE_POSITIONS};`;

/** Returns whether the database is a restored dump or a clone that no platform has adopted. */
export async function isCopy(database: PostgresDatabase): Promise<boolean> {
  const { rows } = await database.sql<{ isCopy: boolean }>(
    'select identity <> svc.database_identity() as "isCopy" from svc.home_database',
  );
  return rows[0]?.isCopy ?? true;
}

/**
 * Throws CONFLICT if the database is a copy. Started beside its original, a copy would run the same deliveries,
 * schedules and workflows a second time.
 */
export async function requireOriginal(database: PostgresDatabase): Promise<void> {
  if (!(await isCopy(database))) return;
  throw new PlatformError(
    'CONFLICT',
    `The database at ${database.server} is a copy of another one, such as a restored dump, or was moved by pg_upgrade. Its waiting deliveries, runs and schedules would run here too. Stop the original platform, if there is one, for good. Then run \`svc migrate --adopt --yes\`.`,
    { details: { server: database.server, reason: 'DATABASE_IS_COPY' } },
  );
}

/**
 * Makes a copy usable. The members of the original are ended, because they do not use this database.
 */
export async function adoptDatabase(database: PostgresDatabase): Promise<void> {
  await database.transact(async (sql) => {
    await sql('lock table svc.home_database in exclusive mode');
    await sql(RAISE_POSITIONS);
    await sql(`update svc.member set ended_at = ${DATABASE_TIME} where ended_at is null`);
    // Copies of vectors on the disks of nodes belong to the history of the original.
    await sql('update svc.vector_collection set instance = gen_random_uuid()');
    await sql('update svc.home_database set identity = svc.database_identity()');
  });
}
