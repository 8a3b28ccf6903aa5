import pg from 'pg';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { ResealedRow, SealedRow, SealedSecretStore } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import { DATABASE_TIME } from '../database-clock.ts';
import { postgresError } from '../postgres-error.ts';

const KEY = 'namespace_id, plugin_id, event, instance_id';
const SELECT = `select namespace_id as "namespaceId", plugin_id as "pluginId", event, instance_id as "instanceId", current,
  previous from svc.webhook_secret`;

/** Encrypted webhook secrets in PostgreSQL. Closing the store closes the database. */
export function postgresSealedSecrets(database: PostgresDatabase): SealedSecretStore {
  return {
    after: (last, limit) =>
      database.read((sql) =>
        last === null
          ? sql<SealedRow>(`${SELECT} order by ${KEY} limit :limit`, { limit })
          : sql<SealedRow>(
              `${SELECT} where (${KEY}) > (:namespaceId, :pluginId, :event, :instanceId) order by ${KEY} limit :limit`,
              { ...last, limit },
            ),
      ),
    replace: (rows) =>
      database.transact(async (sql) => {
        let replaced = 0;
        for (const row of rows) replaced += (await sql<object>(REPLACE, valuesOf(row))).length;
        return replaced;
      }),
    async countByKey() {
      const { rows } = await database.sql<{ id: string; count: number }>(
        `select split_part(sealed, '.', 2) as id, count(*) as count
         from (select namespace_id, current as sealed from svc.webhook_secret
               union all select namespace_id, previous from svc.webhook_secret where previous is not null) as sealed
         where namespace_id <> '' group by id`,
      );
      return new Map(rows.map(({ id, count }) => [id, count]));
    },
    close: () => database.close(),
  };
}

const REPLACE = `
  update svc.webhook_secret set current = :current, previous = :previous
  where namespace_id = :namespaceId and plugin_id = :pluginId and event = :event and instance_id = :instanceId
    and current = :wasCurrent and previous is not distinct from :wasPrevious
  returning event`;

function valuesOf({ from, ...row }: ResealedRow): object {
  return { ...row, wasCurrent: from.current, wasPrevious: from.previous };
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
