import { join } from 'node:path';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { ResealedRow, SealedRow, SealedSecretStore, SecretKey } from '../../ports/index.ts';
import { type Database, openDatabase } from '../database.ts';
import { GATEWAY_MIGRATIONS } from './schema.ts';

/**
 * Counts the encrypted webhook secrets by the id of their key. An encrypted value has the form `v1.<key id>.<data>`. Rows
 * without a namespace are keys that the gateway makes itself.
 */
export const COUNT_BY_KEY = `
  select substr(sealed, 4, instr(substr(sealed, 4), '.') - 1) as id, count(*) as count
  from (select namespace_id, current as sealed from webhook_secret
        union all select namespace_id, previous from webhook_secret where previous is not null)
  where namespace_id <> '' group by id`;

/** Opens `svc.db` for access to its encrypted values. Throws STORE_ERROR if the file cannot be used. */
export async function sqliteSealedSecrets(dataDir: string, logger: Logger): Promise<SealedSecretStore> {
  const db = await openDatabase({ file: join(dataDir, 'svc.db'), migrations: GATEWAY_MIGRATIONS, logger });
  const sql = statements(db);
  const replaceAll = (rows: readonly ResealedRow[]): number =>
    rows.reduce((sum, { from, ...row }) => {
      const was = { wasCurrent: from.current, wasPrevious: from.previous };
      return sum + sql.replace.run({ ...row, ...was }).changes;
    }, 0);
  return {
    after: (last, limit) =>
      db.read(() => (last ? sql.after.all({ ...last, limit }) : sql.first.all({ limit }))),
    replace: (rows) => db.write(() => replaceAll(rows)),
    async countByKey() {
      const rows = await db.read(() => sql.count.all());
      return new Map(rows.map(({ id, count }) => [id, count]));
    },
    close: () => db.close(),
  };
}

function statements(db: Database) {
  const select = `select namespace_id as namespaceId, plugin_id as pluginId, event, instance_id as instanceId, current, previous
    from webhook_secret`;
  const order = 'order by namespace_id, plugin_id, event, instance_id limit :limit';
  type Replacement = SealedRow & { wasCurrent: string; wasPrevious: string | null };
  return {
    first: db.prepare<[{ limit: number }], SealedRow>(`${select} ${order}`),
    after: db.prepare<[SecretKey & { limit: number }], SealedRow>(
      `${select} where (namespace_id, plugin_id, event, instance_id) > (:namespaceId, :pluginId, :event, :instanceId) ${order}`,
    ),
    replace: db.prepare<[Replacement]>(`
      update webhook_secret set current = :current, previous = :previous
      where namespace_id = :namespaceId and plugin_id = :pluginId and event = :event and instance_id = :instanceId
        and current = :wasCurrent and previous is :wasPrevious`),
    count: db.prepare<[], { id: string; count: number }>(COUNT_BY_KEY),
  };
}
