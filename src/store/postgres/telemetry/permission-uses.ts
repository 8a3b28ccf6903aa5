import type { KeptEvent, PermissionUse, PermissionUseFilter } from '../../ports/telemetry.ts';
import { PERMISSION_USED, PLATFORM_PRODUCT, permissionUsesOf } from '../../telemetry/permission-uses.ts';
import type { PostgresDatabase } from '../database.ts';
import { indexedText } from './texts.ts';

/**
 * Adds a table with the newest use of each permission, filled from the stored events. An index of the events finds the
 * few events of uses. PostgreSQL cannot read JSON with NUL characters.
 */
export const PERMISSION_USES = `
  create table svc.permission_use (
    plugin_id text not null,
    tenant_id text not null,
    permission text not null,
    used_at bigint not null,
    primary key (plugin_id, tenant_id, permission)
  );
  create index permission_use_age on svc.permission_use (used_at);
  insert into svc.permission_use (plugin_id, tenant_id, permission, used_at)
  select used ->> 'pluginId', tenant, used ->> 'permission', max(ts)
  from (
    select case when strpos(payload, '\\u0000') = 0 then payload::json end as used, coalesce(tenant_id, '') as tenant, ts
    from svc.event where type = '${PERMISSION_USED}' and product = '${PLATFORM_PRODUCT}'
  ) as event
  where used ->> 'pluginId' is not null and used ->> 'permission' is not null
  group by 1, 2, 3;`;

/** Notes the uses in a batch of events. Can be repeated after a failure. */
export async function notePermissionUses(
  database: PostgresDatabase,
  events: readonly KeptEvent[],
): Promise<void> {
  const uses = permissionUsesOf(events);
  if (uses.length === 0) return;
  await database.sql(
    `insert into svc.permission_use as known (plugin_id, tenant_id, permission, used_at)
     select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
     on conflict (plugin_id, tenant_id, permission)
     do update set used_at = greatest(known.used_at, excluded.used_at)`,
    [
      uses.map(({ pluginId }) => indexedText(pluginId)),
      uses.map(({ tenantId }) => indexedText(tenantId)),
      uses.map(({ permission }) => indexedText(permission)),
      uses.map(({ usedAt }) => usedAt),
    ],
  );
}

export async function readPermissionUses(
  database: PostgresDatabase,
  { pluginId, tenantId }: PermissionUseFilter,
): Promise<PermissionUse[]> {
  const { rows } = await database.sql<PermissionUse>(
    `select permission, max(used_at) as "usedAt" from svc.permission_use
     where plugin_id = $1 ${tenantId === undefined ? '' : 'and tenant_id = $2'}
     group by permission order by permission collate "C"`,
    [pluginId, ...(tenantId === undefined ? [] : [tenantId])].map(indexedText),
  );
  return rows;
}
