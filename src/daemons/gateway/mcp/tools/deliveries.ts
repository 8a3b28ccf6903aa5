import { z } from 'zod';
import {
  DeliveryStatus,
  getDelivery,
  listDeliveries,
  queryLogs,
  replayDelivery,
  type WebhookDeliveryDetails,
} from '../../../../contracts/index.ts';
import { platformTool } from '../platform-tool.ts';
import type { Tool, ToolRun } from '../tool.ts';

const MAX_ITEMS = 50;
const MAX_LOG_LINES = 20;

const delivery = { webhookId: z.uuid().describe('Id of the delivery') };
export const Cursor = z.string().max(1024).optional().describe('`nextCursor` of the previous page');
export const Limit = z.number().int().min(1).max(MAX_ITEMS).default(20);
export const Time = z
  .string()
  .max(64)
  .optional()
  .describe('ISO 8601 with Z or an offset, such as 2030-01-31T12:00:00Z');

export const deliveryTools: readonly Tool[] = [
  platformTool({
    name: 'deliveries_search',
    title: 'Search deliveries',
    description:
      'Lists webhook deliveries, newest first, with their status. Use it to find failed or refused deliveries.',
    needs: 'viewer',
    input: z.strictObject({
      status: z
        .array(DeliveryStatus)
        .min(1)
        .optional()
        .describe('Only deliveries with one of these statuses'),
      pluginId: z.string().max(214).optional(),
      event: z.string().max(128).optional(),
      since: Time,
      until: Time,
      search: z
        .string()
        .min(3)
        .max(200)
        .optional()
        .describe('Text in the body, a header, the outcome or an id'),
      cursor: Cursor,
      limit: Limit,
    }),
    run: ({ since, until, ...query }, { call }) =>
      call(listDeliveries, { query: { ...query, since, until } as never }),
  }),
  platformTool({
    name: 'delivery_show',
    title: 'Show a delivery',
    description: 'Shows a delivery with its steps, attempts, headers, body and outcome.',
    needs: 'viewer',
    input: z.strictObject(delivery),
    run: (params, { call }) => call(getDelivery, { params }),
  }),
  platformTool({
    name: 'delivery_explain',
    title: 'Explain a delivery',
    description:
      'Says why a delivery failed or was refused: the reason, the failing step, the last error, and log lines of its trace.',
    needs: 'viewer',
    input: z.strictObject(delivery),
    run: (params, { call }) => explain(params, call),
  }),
  platformTool({
    name: 'delivery_replay',
    title: 'Replay a delivery',
    description:
      'Runs the handler again with the stored request, as a new delivery. Its effects happen again. Returns the id of the new delivery.',
    needs: 'editor',
    input: z.strictObject(delivery),
    run: (params, { call }) => call(replayDelivery, { params }),
  }),
];

async function explain(params: { webhookId: string }, call: ToolRun['call']) {
  const found = await call(getDelivery, { params });
  const logs = await call(queryLogs, {
    query: { traceId: found.traceId, level: 'warn', limit: MAX_LOG_LINES },
  }).catch(() => null);
  const { webhookId, pluginId, event, status, httpStatus, reason, attempts, nextAttemptAt, traceId } = found;
  return {
    ...{ webhookId, pluginId, event, status, httpStatus, reason, attempts, nextAttemptAt, traceId },
    explanation: found.explanation,
    failedSteps: found.steps.filter(({ outcome }) => !/^ok\b/.test(outcome)),
    lastError: found.attemptHistory.findLast(({ error }) => error !== null)?.error ?? null,
    outcome: found.outcome,
    logLines: logs?.items ?? null,
    next: nextStepOf(found),
  };
}

function nextStepOf({ status, explanation }: WebhookDeliveryDetails): string {
  if (explanation) return explanation.hint;
  switch (status) {
    case 'refused':
      return 'The sender must correct the request and send it again.';
    case 'retrying':
    case 'accepted':
    case 'running':
      return 'Wait: the platform still works on this delivery.';
    case 'failed':
    case 'dead':
    case 'interrupted':
      return 'Correct the cause, then use delivery_replay.';
    default:
      return 'Nothing: the delivery did not fail.';
  }
}
