import { z } from 'zod';
import { getQueue, getQueueItem, type Queue, type QueueItemDetails } from '../../../contracts/index.ts';
import { formatDuration } from '../../../kit/time/duration.ts';
import { defineCommand, ok } from '../../define-command.ts';
import type { Style } from '../../style.ts';
import { pairs } from '../../table.ts';
import { timeText } from '../../time-text.ts';
import { queueArg } from './queue-args.ts';

/** @spec docs/queues.md */
export const show = defineCommand({
  name: 'queues show',
  summary: 'Show a queue with its settings, or one of its items with its content',
  example: 'svc queues show orders',
  args: z.object({ ...queueArg, item: z.string().min(1).max(256).optional().describe('id of an item') }),
  positionals: ['queue', 'item'],
  async run({ queue, item }, { client }) {
    const params = { name: queue };
    if (item === undefined) return ok<Queue | QueueItemDetails>(await client.call(getQueue, { params }));
    return ok<Queue | QueueItemDetails>(await client.call(getQueueItem, { params: { ...params, id: item } }));
  },
  text: (shown: Queue | QueueItemDetails, style) =>
    'settings' in shown ? queueText(shown, style) : itemText(shown, style),
});

export function queueText(
  { name, waiting, leased, dead, oldestAgeMs, settings, settingsFrom }: Queue,
  style: Style,
) {
  return pairs(
    [
      ['queue', name],
      ['waiting', `${waiting}${oldestAgeMs === null ? '' : `, oldest ${formatDuration(oldestAgeMs)}`}`],
      ['leased', String(leased)],
      ['dead', String(dead)],
      ['max attempts', String(settings.maxAttempts)],
      ['concurrency', settings.concurrency === null ? 'no limit' : String(settings.concurrency)],
      ['lease', `${formatDuration(settings.leaseMs)}, at most ${formatDuration(settings.maxLeaseMs)}`],
      ['order', settings.order],
      ['settings from', settingsFrom],
    ],
    style,
  );
}

function itemText(item: QueueItemDetails, style: Style): string {
  const { content, availableAt, leasedUntil, endedAt, lastError } = item;
  const facts = pairs(
    [
      ['id', item.id],
      ['status', item.status],
      ['attempt', String(item.attempt)],
      ['received', timeText(item.receivedAt)],
      ['delivery', item.deliveryId ?? '-'],
      ['order key', item.orderKey ?? '-'],
      ...(availableAt === null ? [] : [['available', timeText(availableAt)] as [string, string]]),
      ...(leasedUntil === null ? [] : [['leased until', timeText(leasedUntil)] as [string, string]]),
      ...(endedAt === null ? [] : [['ended', timeText(endedAt)] as [string, string]]),
      ...(lastError === null ? [] : [['last error', lastError] as [string, string]]),
    ],
    style,
  );
  if (!content) return facts;
  const headers = Object.entries(content.headers).map(([name, value]) => `${name}: ${value}`);
  const body = content.body === null ? (content.bodyBase64 ?? 'null') : JSON.stringify(content.body, null, 2);
  return [facts, headers.join('\n'), body].filter((part) => part !== '').join('\n\n');
}
