import { deliver } from './deliveries.ts';
import type { Node, Webhook } from './nodes.ts';
import type { PostgresServer } from './postgres-server.ts';
import { medianRate } from './window-rates.ts';

const WINDOWS = 3;
const WINDOW_MS = 2500;
/** Time in which the leader finds a new gateway, and that one starts its plugin processes. */
const WARM_UP_MS = 4000;
/** Outlasts the windows: a gateway has two plugin processes, which run at most 40 deliveries per second. */
const BACKLOG = 6000;
const CONNECTIONS = 50;
const BURST_MS = 500;

/** Accepts a backlog and starts running it. */
export async function startBacklog({ port, svc }: Node, webhook: Webhook): Promise<void> {
  for (let sent = 0; sent < BACKLOG; )
    sent += (await deliver({ port, webhook, connections: CONNECTIONS, durationMs: BURST_MS })).answered;
  await svc('webhooks', 'resume', 'bench', webhook.event);
}

/** Median of completed deliveries per second in consecutive windows, while the backlog lasts. */
export async function completedPerSecond(postgres: PostgresServer, { event }: Webhook): Promise<number> {
  const read = async (): Promise<{ count: number; hasBacklog: boolean }> => {
    const { rows } = await postgres.run(
      `select count(*) filter (where status = 'succeeded')::int as count,
         count(*) filter (where status = 'accepted') > 0 as "hasBacklog"
       from svc.delivery where event = $1`,
      [event],
    );
    return rows[0] as { count: number; hasBacklog: boolean };
  };
  return medianRate(read, { warmUpMs: WARM_UP_MS, windows: WINDOWS, windowMs: WINDOW_MS });
}
