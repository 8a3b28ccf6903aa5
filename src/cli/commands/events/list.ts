import { z } from 'zod';
import { listEvents, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { moreLine } from '../../list-page.ts';
import { eventFlags, eventQuery, traceFlag } from './arguments.ts';
import { eventLine } from './event-line.ts';

/** @spec REST API: analytics; docs/observability.md "Analytics" */
export const list = defineCommand({
  name: 'events list',
  summary: 'List analytics events, newest first',
  example: 'svc events list --type plugin.command.failed --since 1d',
  args: z.object({
    ...eventFlags,
    ...traceFlag,
    limit: z.coerce
      .number()
      .int()
      .min(1)
      .max(1000)
      .default(50)
      .describe('number of events; default 50, at most 1,000'),
    offset: z.coerce.number().int().min(0).default(0).describe('number of events to skip'),
    cursor: z.coerce.number().int().min(0).optional().describe('nextCursor of the previous page'),
  }),
  short: { limit: 'n' },
  async run({ limit, offset: skipped, cursor, ...flags }, { client, globals, clock }) {
    const offset = cursor ?? skipped;
    const query = { ...eventQuery(flags, globals, clock.now()), limit, offset };
    const reply = await client.call(listEvents, { query });
    const end = offset + reply.items.length;
    return ok({ ...reply, nextCursor: end < reply.total ? String(end) : null });
  },
  text(
    { items, total, offset, nextCursor }: ReplyOf<typeof listEvents> & { nextCursor: string | null },
    style,
  ) {
    if (items.length === 0) return 'No matching events.';
    const lines = items.map((event) => eventLine(event, style));
    return (
      [...lines, style.dim(`${offset + 1} to ${offset + items.length} of ${total}`)].join('\n') +
      moreLine(nextCursor, style)
    );
  },
});
