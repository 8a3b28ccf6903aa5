import { z } from 'zod';
import { listMessages, type Message, MessageStatus, TraceId } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { type ListPage, moreLine, pageFlags, pageShort } from '../../list-page.ts';
import { pagesUpTo } from '../../pages-up-to.ts';
import { table } from '../../table.ts';
import { timeText } from '../../time-text.ts';
import { filterFlags, filterOf } from './message-args.ts';
import { countsText } from './message-text.ts';

const SHOWN = 50;

/** @spec docs/messages.md */
export const list = defineCommand({
  name: 'messages list',
  summary: 'List messages, newest first; --status dead lists dead letters',
  example: 'svc messages list --status dead --since 1d',
  idField: 'id',
  args: z.object({
    status: MessageStatus.optional().describe('status at any endpoint, or at --endpoint'),
    ...filterFlags,
    trace: TraceId.optional().describe('only messages of this trace'),
    ...pageFlags,
    limit: pageFlags.limit.describe(`maximum number; default ${SHOWN}`),
  }),
  short: pageShort,
  async run({ status, trace, limit = SHOWN, cursor, ...flags }, { client, clock }) {
    const filter = {
      ...filterOf(flags, clock.now()),
      ...(status === undefined ? {} : { status }),
      ...(trace === undefined ? {} : { traceId: trace }),
    };
    return ok(
      await pagesUpTo(
        { limit, cursor },
        (part) => client.call(listMessages, { query: { ...filter, ...part } }),
        200,
      ),
    );
  },
  text({ items, nextCursor }: ListPage<Message>, style) {
    if (items.length === 0) return 'No matching messages.';
    const rows = items.map(({ id, type, application, createdAt, deliveries }) => [
      timeText(createdAt),
      id,
      type,
      countsText(deliveries, style),
      application ?? '',
    ]);
    return (
      table(['created', 'message', 'type', 'endpoints', 'application'], rows, style) +
      moreLine(nextCursor, style)
    );
  },
});
