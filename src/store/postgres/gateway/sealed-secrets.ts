import pg from 'pg';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { SEALED_COLUMNS, type SealedSecretStore } from '../../ports/index.ts';
import { replaceParameters, sealedRow, sealedStatements } from '../../sealed-statements.ts';
import type { PostgresDatabase } from '../database.ts';
import { DATABASE_TIME } from '../database-clock.ts';
import { postgresError } from '../postgres-error.ts';

type Row = Record<string, string | number | null>;

const TABLES = new Map(
  SEALED_COLUMNS.map((columns) => [columns.table, { columns, sql: sealedStatements(columns, 'svc.') }]),
);

const COUNT = `
  select split_part(sealed, '.', 2) as id, count(*) as count
  from (${[...TABLES.values()].flatMap(({ sql }) => sql.counted).join(' union all ')}) as sealed group by id`;

/** Sealed values in PostgreSQL. Closing the store closes the database. */
export function postgresSealedSecrets(database: PostgresDatabase): SealedSecretStore {
  return {
    async after(table, last, limit) {
      const { columns, sql } = TABLES.get(table)!;
      const rows = await database.read((run) =>
        last === null ? run<Row>(sql.first, { limit }) : run<Row>(sql.after, { ...last, limit }),
      );
      return rows.map((row) => sealedRow(columns, row));
    },
    replace: (table, rows) =>
      database.transact(async (run) => {
        const { sql } = TABLES.get(table)!;
        let replaced = 0;
        for (const row of rows) replaced += (await run<object>(sql.replace, replaceParameters(row))).length;
        return replaced;
      }),
    async countByKey() {
      const { rows } = await database.sql<{ id: string; count: number }>(COUNT);
      return new Map(rows.map(({ id, count }) => [id, count]));
    },
    close: () => database.close(),
  };
}

/**
 * Prevents all nodes from starting until `release` is called. Throws CONFLICT if a node is running. `server` is used in
 * messages.
 */
export async function lockOutNodes(
  { url, server }: { url: string; server: string },
  operation: string,
): Promise<{ release(): Promise<void> }> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'svc-maintenance',
    keepAlive: true,
  });
  // The listener prevents an unhandled error event. The statement in progress also rejects with the error.
  client.on('error', () => {});
  const release = async (): Promise<void> => void (await client.end().catch(() => {}));
  try {
    await client.connect();
    await client.query('begin; lock table svc.member in exclusive mode');
    const { rows } = await client.query<{ instance: string }>(
      `select distinct instance from svc.member
       where ended_at is null and (lease_until is null or lease_until > ${DATABASE_TIME}) order by instance`,
    );
    if (rows.length > 0)
      throw nodesRunning(
        rows.map(({ instance }) => instance),
        operation,
      );
    return { release };
  } catch (error) {
    await release();
    throw postgresError(server, error);
  }
}

function nodesRunning(instances: readonly string[], operation: string): PlatformError {
  return new PlatformError(
    'CONFLICT',
    `These nodes use the database: ${instances.join(', ')}. Stop them before the ${operation}.`,
    { details: { instances, hint: 'Run svc down on each node. A killed node counts for ten more seconds.' } },
  );
}
