import { z } from 'zod';
import { IsoTime, notBlank } from './common.ts';

export const HOUR_MS = 3600_000;
/** Hours that one call counts at most. */
export const MAX_COUNTED_HOURS = 31 * 24;

/** A time in a query, as epoch ms or as an ISO 8601 date and time. */
export const QueryTime = notBlank(
  z.union([z.coerce.number().int().nonnegative().max(8.64e15), IsoTime]),
).describe('Epoch milliseconds, or an ISO 8601 date and time with Z or an offset');

/** Query of counts per hour. `to` is exclusive. */
export const countsQuery = z.strictObject({
  from: QueryTime.optional().describe('Default: 24 hours before `to`'),
  to: QueryTime.optional().describe('Exclusive; default: now'),
  by: z.literal('hour').default('hour'),
});
export type CountsQuery = z.infer<typeof countsQuery>;

const hour = z.number().describe('Start of the hour in UTC, in epoch milliseconds');
const count = z.number().int();
const range = {
  from: z.number().describe('Start of the first hour'),
  to: z.number().describe('End of the last hour, exclusive'),
};

const deliveries = {
  total: count.describe('Sum of the other numbers'),
  open: count.describe('Accepted, running or retrying'),
  succeeded: count,
  failed: count.describe('Failed, dead or interrupted'),
  unhandled: count.describe('Refused, challenge or duplicate: no handler ran'),
};

/** Deliveries per hour, oldest first. Hours without deliveries are included. */
export const DeliveryCounts = z.object({
  ...range,
  items: z.array(z.object({ hour, ...deliveries })),
  totals: z.object(deliveries),
  unfinished: count.describe('Accepted, running or retrying now, of the last 31 days, whatever the range'),
});

const runs = {
  total: count.describe('Sum of the other numbers'),
  open: count.describe('Not ended yet'),
  succeeded: count,
  failed: count.describe('Failed or timed out'),
  cancelled: count,
};

/** Workflow runs per hour, oldest first. Hours without runs are included. */
export const RunCounts = z.object({
  ...range,
  items: z.array(z.object({ hour, ...runs })),
  totals: z.object(runs),
});
