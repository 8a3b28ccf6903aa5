import { messageOf } from '../../../kit/errors/errors.ts';
import { silentLogger } from '../../../kit/telemetry/logger.ts';
import { formatDuration } from '../../../kit/time/duration.ts';
import type { DatabaseHealth } from '../../../store/ports/index.ts';
import { type Fact, failure, fine, warning } from './check.ts';

/** Dead rows of a table below this number do not slow its queries. */
const MIN_DEAD_ROWS = 10_000;
/** Share of dead rows above which autovacuum is too slow. It normally starts at 0.02 to 0.05. */
const MAX_DEAD_SHARE = 0.2;
const MAX_TRANSACTION_SECONDS = 300;
const MAX_IDLE_SECONDS = 60;
const MAX_CONNECTION_SHARE = 0.8;

/** Checks the configured PostgreSQL server: its schema, its dead rows and its sessions. */
export async function checkPostgres(url: string): Promise<Fact[]> {
  const { databaseHealth, PostgresDatabase, readSchemaState, requireOriginal, requireUsableSchema } =
    await import('../../../store/postgres/index.ts');
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-doctor' });
  try {
    const state = await readSchemaState(database);
    requireUsableSchema(state, database.server);
    await requireOriginal(database);
    const usable = fine(`PostgreSQL at ${database.server} has schema ${state.version}`);
    return [usable, ...healthFacts(await databaseHealth(database))];
  } catch (error) {
    return [failure(messageOf(error), 'See docs/scale-out.md.')];
  } finally {
    await database.close();
  }
}

/** Returns warnings for everything that keeps dead rows or exhausts connections. */
export function healthFacts(health: DatabaseHealth): Fact[] {
  return [...vacuumFacts(health), ...sessionFacts(health), ...slotFacts(health)];
}

function vacuumFacts({ tables, autovacuum, tablesWithoutAutovacuum }: DatabaseHealth): Fact[] {
  const facts: Fact[] = [];
  if (!autovacuum)
    facts.push(
      warning(
        'autovacuum is off, so queue tables grow and become slow.',
        'Set autovacuum = on in postgresql.conf, and reload the server.',
      ),
    );
  for (const table of tablesWithoutAutovacuum)
    facts.push(
      warning(
        `autovacuum is off for svc.${table}.`,
        `Run: alter table svc.${table} reset (autovacuum_enabled)`,
      ),
    );
  for (const { table, liveRows, deadRows } of tables) {
    if (deadRows < MIN_DEAD_ROWS || deadRows < liveRows * MAX_DEAD_SHARE) continue;
    facts.push(
      warning(
        `svc.${table} has ${deadRows} dead rows beside ${liveRows} live ones.`,
        `End long transactions, then run: vacuum (analyze) svc.${table}`,
      ),
    );
  }
  return facts;
}

function sessionFacts({ idleInTransaction, oldestTransactionSeconds, connections }: DatabaseHealth): Fact[] {
  const facts: Fact[] = [];
  if (idleInTransaction && idleInTransaction.seconds > MAX_IDLE_SECONDS) {
    const { pid, application, seconds } = idleInTransaction;
    const name = application || 'without a name';
    facts.push(
      warning(
        `Session ${pid} (${name}) has been idle in a transaction for ${durationOf(seconds)}.`,
        `It keeps dead rows. Close that program, or run: select pg_terminate_backend(${pid})`,
      ),
    );
  }
  if (oldestTransactionSeconds > MAX_TRANSACTION_SECONDS)
    facts.push(
      warning(
        `The oldest transaction has run for ${durationOf(oldestTransactionSeconds)}, so no rows deleted since can be removed.`,
        'Find it: select pid, application_name, query from pg_stat_activity order by xact_start',
      ),
    );
  if (connections.used > connections.limit * MAX_CONNECTION_SHARE)
    facts.push(
      warning(
        `${connections.used} of ${connections.limit} connections of the server are in use.`,
        'Raise max_connections of the server.',
      ),
    );
  return facts;
}

function slotFacts({ unusedSlots }: DatabaseHealth): Fact[] {
  return unusedSlots.map((slot) =>
    warning(
      `Nothing reads the replication slot ${slot}, which keeps the write-ahead log on the disk.`,
      `Start its standby, or run: select pg_drop_replication_slot('${slot}')`,
    ),
  );
}

const durationOf = (seconds: number): string => formatDuration(Math.round(seconds) * 1000);
