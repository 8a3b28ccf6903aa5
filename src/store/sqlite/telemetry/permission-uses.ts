import type { KeptEvent, TelemetryQueries } from '../../ports/telemetry.ts';
import {
  PERMISSION_USED,
  type PermissionUseRow,
  PLATFORM_PRODUCT,
  permissionUsesOf,
} from '../../telemetry/permission-uses.ts';
import type { Database } from '../database.ts';

/** Adds a table with the newest use of each permission, filled from the stored events. */
export const PERMISSION_USES = `
  create table permission_use (
    plugin_id text not null,
    tenant_id text not null,
    permission text not null,
    used_at integer not null,
    primary key (plugin_id, tenant_id, permission)
  ) strict, without rowid;
  create index permission_use_age on permission_use (used_at);
  insert into permission_use (plugin_id, tenant_id, permission, used_at)
  select payload ->> '$.pluginId', coalesce(tenant_id, ''), payload ->> '$.permission', max(ts)
  from event where type = '${PERMISSION_USED}' and product = '${PLATFORM_PRODUCT}'
    and json_type(payload, '$.pluginId') = 'text' and json_type(payload, '$.permission') = 'text'
  group by 1, 2, 3;`;

/** Returns a function that notes the uses in a batch of events. The function must be called in a transaction. */
export function permissionUseNoter(db: Database): (events: readonly KeptEvent[]) => void {
  const note = db.prepare<[PermissionUseRow]>(`
    insert into permission_use (plugin_id, tenant_id, permission, used_at)
    values (:pluginId, :tenantId, :permission, :usedAt)
    on conflict do update set used_at = max(used_at, excluded.used_at)`);
  return (events) => {
    for (const use of permissionUsesOf(events)) note.run(use);
  };
}

export function permissionUseQueries(db: Database): Pick<TelemetryQueries, 'permissionUses'> {
  const select = (condition: string) =>
    db.prepare<[{ pluginId: string; tenantId?: string }], { permission: string; usedAt: number }>(`
      select permission, max(used_at) as usedAt from permission_use where plugin_id = :pluginId ${condition}
      group by permission order by permission`);
  const ofAll = select('');
  const ofTenant = select('and tenant_id = :tenantId');
  return {
    permissionUses: (filter) => db.read(() => (filter.tenantId === undefined ? ofAll : ofTenant).all(filter)),
  };
}
