import type { BulkJob } from '../../ui/bulk/bulk-job.ts';
import { statusesOf } from './statuses.ts';

/** Statuses of deliveries that ended in a handler. Only these can be replayed. */
const REPLAYABLE = ['succeeded', 'failed', 'dead', 'interrupted'];

/** Bulk actions of the list of deliveries. */
export function replayActions(
  { status, since, ...filters }: Partial<Record<string, string>>,
  selection: string,
  webhookIds: readonly string[],
): Array<{ label: string; chosen: BulkJob; all: BulkJob | undefined }> {
  const job = (body: Record<string, unknown>, of: string): BulkJob => ({
    ...{ endpoint: 'replayDeliveries', label: 'Replay', selection: of, body },
  });
  const from = since === undefined ? {} : { since: /^\d+$/.test(since) ? Number(since) : since };
  const statuses = statusesOf(status) ?? REPLAYABLE;
  const canReplay = statuses.every((each) => REPLAYABLE.includes(each));
  const all = canReplay ? job({ ...filters, ...from, status: statuses }, selection) : undefined;
  return [{ label: 'Replay', chosen: job({ webhookIds }, 'chosen rows'), all }];
}
