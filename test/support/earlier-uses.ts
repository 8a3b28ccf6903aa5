import type { PermissionUse } from '../../src/store/ports/telemetry.ts';
import { NOON } from './telemetry.ts';

interface EarlierEvent {
  ts: number;
  payload: string;
  type?: string;
  product?: string;
  tenantId?: string | null;
}

const use = (ts: number, permission: string, fields: Partial<EarlierEvent> = {}): EarlierEvent => ({
  ts,
  payload: JSON.stringify({ pluginId: 'crm', permission }),
  ...fields,
});

/** Events that were stored before the newest uses of permissions were kept. */
export const EARLIER_EVENTS: readonly EarlierEvent[] = [
  use(NOON + 2, 'platform.state'),
  use(NOON + 7, 'platform.state'),
  use(NOON + 5, 'platform.state'),
  use(NOON + 1, 'network api.example.com'),
  use(NOON + 9, 'platform.state', { tenantId: 'other' }),
  use(NOON + 3, 'platform.jobs', { tenantId: null }),
  use(NOON + 8, 'x', { payload: '{"pluginId":"mail","permission":"invoke \\"crm\\""}' }),
  // None of these is a use: events of a plugin, of another type, and without a plugin or a permission.
  use(NOON + 20, 'platform.state', { product: 'crm' }),
  use(NOON + 20, 'platform.state', { type: 'plugin.command.completed' }),
  use(NOON + 20, 'x', { payload: '{"permission":"platform.state"}' }),
  use(NOON + 20, 'x', { payload: '{"pluginId":"crm"}' }),
  use(NOON + 20, 'x', { payload: '{"pluginId":"crm","permission":null}' }),
  use(NOON + 20, 'x', { payload: 'null' }),
];

/** Newest uses in `EARLIER_EVENTS`, by plugin and tenant. Without a tenant: of all tenants. */
export const EARLIER_USES: ReadonlyArray<{ pluginId: string; tenantId?: string; uses: PermissionUse[] }> = [
  {
    ...{ pluginId: 'crm', tenantId: 'acme' },
    uses: [
      { permission: 'network api.example.com', usedAt: NOON + 1 },
      { permission: 'platform.state', usedAt: NOON + 7 },
    ],
  },
  { pluginId: 'crm', tenantId: 'other', uses: [{ permission: 'platform.state', usedAt: NOON + 9 }] },
  { pluginId: 'crm', tenantId: '', uses: [{ permission: 'platform.jobs', usedAt: NOON + 3 }] },
  {
    pluginId: 'crm',
    uses: [
      { permission: 'network api.example.com', usedAt: NOON + 1 },
      { permission: 'platform.jobs', usedAt: NOON + 3 },
      { permission: 'platform.state', usedAt: NOON + 9 },
    ],
  },
  { pluginId: 'mail', tenantId: 'acme', uses: [{ permission: 'invoke "crm"', usedAt: NOON + 8 }] },
];

/** Columns of the table of events that both stores have. */
export const EVENT_COLUMNS =
  'event_id, type, ts, ingest_ts, product, version, run_id, tenant_id, payload, occurrences';

/** Returns the values of `EVENT_COLUMNS`. */
export function eventValues(event: EarlierEvent, id: number): Array<string | number | null> {
  const { ts, payload, type = 'plugin.permission.used', product = 'svc', tenantId = 'acme' } = event;
  return [`e${id}`, type, ts, ts, product, '1', 'run', tenantId, payload, 1];
}
