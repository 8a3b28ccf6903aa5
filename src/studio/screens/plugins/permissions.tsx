import type { AnalyticsEvent } from '../../../contracts/analytics.ts';
import { useQuery } from '../../api/query.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty } from '../../ui/states.tsx';
import { Time } from '../../ui/time.tsx';
import { grantedBy, isUseRecorded } from './granted.ts';

/** Maximum number of stored events that are searched for uses. They are the newest ones of all plugins. */
const MAX_EVENTS = 1000;

interface Row {
  permission: string;
  /** Last recorded use, in epoch ms, or why it is unknown. */
  used: number | string;
}

interface PermissionsProps {
  pluginId: string;
  permissions: Record<string, unknown>;
}

/** Permissions that a plugin has, and the last use of each. */
export function Permissions({ pluginId, permissions }: PermissionsProps) {
  const query = { type: 'plugin.permission.used', source: 'svc', limit: MAX_EVENTS };
  const { data } = useQuery('listEvents', { query }, { everyMs: 10_000 });
  const isComplete = data !== undefined && data.total <= data.items.length;
  const uses = usesOf(pluginId, data?.items ?? []);
  const granted = grantedBy(permissions);
  // A route or command can have permissions of its own, beside those of the plugin.
  const names = [...new Set([...granted, ...uses.keys()])];
  const unused = isComplete ? 'no use stored' : `not among the newest ${MAX_EVENTS} uses of all plugins`;
  const rows = names.map((permission) => ({
    permission,
    used: isUseRecorded(permission) ? (uses.get(permission) ?? (data ? unused : '')) : 'not recorded',
  }));
  return (
    <Section title="Permissions">
      {rows.length === 0 ? (
        <Empty>It may use nothing outside of its own code.</Empty>
      ) : (
        <DataTable
          label="Permissions"
          columns={COLUMNS}
          items={rows}
          keyOf={({ permission }) => permission}
        />
      )}
    </Section>
  );
}

const COLUMNS: ReadonlyArray<Column<Row>> = [
  { name: 'Permission', value: ({ permission }) => <code>{permission}</code> },
  {
    name: 'Last used (within a day)',
    value: ({ used }) => (typeof used === 'string' ? used : <Time ms={used} />),
  },
];

/** Returns the last use of each permission. Events are listed newest first. */
function usesOf(pluginId: string, events: readonly AnalyticsEvent[]): Map<string, number> {
  const uses = new Map<string, number>();
  for (const { ts, payload } of events) {
    const use = payload as { pluginId?: string; permission?: string } | undefined;
    if (use?.pluginId !== pluginId || use.permission === undefined || uses.has(use.permission)) continue;
    uses.set(use.permission, Date.parse(ts));
  }
  return uses;
}
