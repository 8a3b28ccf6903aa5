import type { PluginId } from '../../../contracts/ids.ts';
import { useQuery } from '../../api/query.ts';
import { type Column, DataTable } from '../../ui/data-table.tsx';
import { Section } from '../../ui/section.tsx';
import { Empty } from '../../ui/states.tsx';
import { Time } from '../../ui/time.tsx';
import { grantedBy, isUseRecorded } from './granted.ts';

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
  const query = { pluginId: pluginId as PluginId };
  const { data } = useQuery('listPermissionUses', { query }, { everyMs: 10_000 });
  const uses = new Map(data?.items.map(({ permission, lastUsedAt }) => [permission, lastUsedAt]));
  const granted = grantedBy(permissions);
  // A route or command can have permissions of its own, beside those of the plugin.
  const names = [...new Set([...granted, ...uses.keys()])];
  const rows = names.map((permission) => ({
    permission,
    used: isUseRecorded(permission)
      ? (uses.get(permission) ?? (data ? 'no use stored' : ''))
      : 'not recorded',
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
