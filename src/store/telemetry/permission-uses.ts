import type { KeptEvent } from '../ports/telemetry.ts';

export const PERMISSION_USED = 'plugin.permission.used';
/** Product of the events of the platform. Plugins cannot emit events of this product. */
export const PLATFORM_PRODUCT = 'svc';

/** Newest use of a permission by a plugin for a tenant. */
export interface PermissionUseRow {
  pluginId: string;
  /** Empty for the platform itself. */
  tenantId: string;
  permission: string;
  /** Epoch ms. */
  usedAt: number;
}

/**
 * Returns the newest use of each permission in a batch of events. The rows are sorted, so that nodes which store the
 * same permissions lock the rows in the same order.
 */
export function permissionUsesOf(events: readonly KeptEvent[]): PermissionUseRow[] {
  const rows = new Map<string, PermissionUseRow>();
  for (const { event, ts, tenantId } of events) {
    if (event.type !== PERMISSION_USED || event.source.product !== PLATFORM_PRODUCT) continue;
    const { pluginId, permission } = (event.payload ?? {}) as Record<string, unknown>;
    if (typeof pluginId !== 'string' || typeof permission !== 'string') continue;
    const key = JSON.stringify([pluginId, tenantId ?? '', permission]);
    const usedAt = Math.max(ts, rows.get(key)?.usedAt ?? 0);
    rows.set(key, { pluginId, tenantId: tenantId ?? '', permission, usedAt });
  }
  return [...rows].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}
