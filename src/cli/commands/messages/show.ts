import { z } from 'zod';
import { getMessage, type MessageDetails } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { pairs, table } from '../../table.ts';
import { timeText } from '../../time-text.ts';
import { messageArg } from './message-args.ts';
import { statusText } from './message-text.ts';

/** @spec docs/messages.md */
export const show = defineCommand({
  name: 'messages show',
  summary: 'Show a message with its data, and its status at each endpoint',
  example: 'svc messages show msg_01k8x2v7w9m4q5r6s7t8a9b0cd',
  idField: 'id',
  args: z.object({ id: messageArg }),
  run: async ({ id }, { client }) => ok(await client.call(getMessage, { params: { id } })),
  text({ id, type, application, createdAt, traceId, data, endpoints }: MessageDetails, style) {
    const facts = pairs(
      [
        ['message', id],
        ['type', type],
        ...(application === null ? [] : [['application', application] as [string, string]]),
        ['created', timeText(createdAt)],
        ['trace', traceId],
        ['data', JSON.stringify(data, null, 2)],
      ],
      style,
    );
    if (endpoints.length === 0) return `${facts}\n\nNo endpoint receives it.`;
    const rows = endpoints.map((each) => [
      each.endpointId,
      statusText(each.status, style),
      String(each.attempts),
      timeText(each.nextAttemptAt),
      String(each.lastStatus ?? '-'),
      each.lastError ?? '',
    ]);
    return `${facts}\n\n${table(['endpoint', 'status', 'attempts', 'next', 'answer', 'error'], rows, style)}`;
  },
});
