import type { AnalyticsEvent } from '../../../contracts/analytics.ts';
import { useQuery } from '../../api/query.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty } from '../../ui/states.tsx';
import { Time } from '../../ui/time.tsx';
import { grantedBy, isUseRecorded } from './granted.ts';

/** Maximum number of stored events that are searched for uses. */
const MAX_EVENTS = 1000;

interface Row {
  permission: string;
  /** Last recorded use, in epoch ms. Null if none is stored. Undefined if uses of it are not recorded. */
  usedAt: number | null | undefined;
}

interface PermissionsProps {
  pluginId: string;
  permissions: Record<string, unknown>;
}

/** Permissions that a plugin has, and the last use of each. */
export function Permissions({ pluginId, permissions }: PermissionsProps) {
  const query = { type: 'plugin.permission.used', source: 'svc', limit: MAX_EVENTS };
  const { data } = useQuery('listEvents', { query }, { everyMs: 10_000 });
  const uses = usesOf(pluginId, data?.items ?? []);
  const granted = grantedBy(permissions);
  // A route or command can have permissions of its own, beside those of the plugin.
  const names = [...new Set([...granted, ...uses.keys()])];
  const rows = names.map((permission) => ({
    permission,
    usedAt: isUseRecorded(permission) ? (uses.get(permission) ?? null) : undefined,
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
    value: ({ usedAt }) => {
      if (usedAt === undefined) return 'not recorded';
      return usedAt === null ? 'no use stored' : <Time ms={usedAt} />;
    },
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
