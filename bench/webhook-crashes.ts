import { crashRun } from './support/crash-run.ts';
import { type BenchResult, round } from './support/result.ts';

const DELIVERIES = 90_000;
const DUPLICATES = 1 / 9;
const CONNECTIONS = 50;
const KILLS = 5;

/** 100,000 requests, a tenth with a repeated id; the gateway is killed five times; senders retry. */
export async function benchmark(): Promise<BenchResult> {
  const report = await crashRun({
    deliveries: DELIVERIES,
    duplicates: DUPLICATES,
    connections: CONNECTIONS,
    kills: KILLS,
    settleMs: 600_000,
  });
  return {
    name: 'Webhook deliveries through five crashes',
    rows: [
      {
        'ids acknowledged': report.acknowledged,
        'answered duplicate': report.toldDuplicate,
        'kill -9': report.kills,
        'sent again': report.retried,
        lost: report.lost,
        'handled twice': report.handledTwice,
        'of these, no crash between': report.unexplained,
        'ids/s': round(report.perSecond),
      },
    ],
    note: `${DELIVERIES} ids and ${Math.round(DELIVERIES * DUPLICATES)} repeats from ${CONNECTIONS} connections, half to a sync webhook, half to an async one. A delivery may be handled twice if the gateway dies after its handler ran and before the result is on disk; none may be lost.`,
  };
}

export { benchmark as run };

if (import.meta.main) console.log(JSON.stringify(await benchmark(), null, 2));
