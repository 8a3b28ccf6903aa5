import { LEASE_MS } from '../daemons/membership/membership.ts';
import type { LoadedConfig } from '../kit/config/config.ts';
import { postgresUrlOf } from '../kit/config/store-url.ts';
import { silentLogger } from '../kit/telemetry/logger.ts';
import { formatDuration } from '../kit/time/duration.ts';
import type { MemberOverview } from '../store/postgres/member-overview.ts';
import type { Style } from './style.ts';
import { table } from './table.ts';

/** A service of a node that shares the store. */
export interface MemberView extends Omit<MemberOverview, 'leaseLeftMs'> {
  /** Time since the last renewal of the lease, in ms. Null without a lease. */
  leaseAgeMs: number | null;
  /** Whether the lease has expired. The node is then dead, stopped or cut off from the store. */
  isExpired: boolean;
}

/**
 * Returns the services of all nodes. Returns an empty list if the store is not PostgreSQL. Throws STORE_ERROR if the
 * store does not answer.
 */
export async function readMembers({ config, env }: LoadedConfig): Promise<MemberView[]> {
  const url = postgresUrlOf(config.store, env);
  if (url === null) return [];
  const { memberOverview, PostgresDatabase } = await import('../store/postgres/index.ts');
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-status' });
  try {
    const members = (await memberOverview(database)).map(viewOf);
    return new Set(members.map(({ instance }) => instance)).size > 1 ? members : [];
  } finally {
    await database.close();
  }
}

function viewOf({ leaseLeftMs, ...member }: MemberOverview): MemberView {
  const leaseAgeMs = leaseLeftMs === null ? null : Math.max(0, LEASE_MS - leaseLeftMs);
  return { ...member, leaseAgeMs, isExpired: leaseLeftMs !== null && leaseLeftMs < 0 };
}

/** Formats the services of the nodes as a table. By default, `width` is the width of the terminal. */
export function membersText(members: readonly MemberView[], style: Style, width?: number): string {
  const rows = members.map(({ instance, kind, version, leaseAgeMs, isExpired, feedLagMs, url }) => [
    shortened(instance),
    kind,
    version,
    isExpired ? style.red(`expired, ${durationOf(leaseAgeMs)}`) : durationOf(leaseAgeMs),
    durationOf(feedLagMs),
    url ?? '-',
  ]);
  return table(['node', 'service', 'version', 'lease age', 'feed lag', 'url'], rows, style, width);
}

/** Maximum length at which ids of nodes are shown. `--json` shows the full ids. */
const MAX_NODE_CHARS = 24;
/** Keeps the end of a node id, because generated ids start with a similar timestamp. */
const shortened = (id: string): string => {
  if (id.length <= MAX_NODE_CHARS) return id;
  const head = id.startsWith('node_') ? 'node_' : '';
  return `${head}…${id.slice(head.length + 1 - MAX_NODE_CHARS)}`;
};

const durationOf = (ms: number | null): string => (ms === null ? '-' : formatDuration(ms));
