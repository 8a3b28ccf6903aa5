import { z } from 'zod';
import { ApplicationId, EventType, publishMessage, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { readJson } from '../../json-flag.ts';

/** @spec docs/messages.md */
export const send = defineCommand({
  name: 'messages send',
  summary: 'Send a message to the endpoints of its type and application',
  example: `svc messages send order.paid --data '{"id": "o1"}'`,
  idField: 'id',
  args: z.object({
    type: EventType.describe('event type'),
    data: z.string().default('{}').describe('data as JSON; "@<file>" reads a file, "-" reads stdin'),
    application: ApplicationId.optional().describe('only to the endpoints of this application'),
    key: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .describe('idempotency key; a second message with it is not sent'),
  }),
  positionals: ['type'],
  async run({ type, data, application, key }, { client, cwd }) {
    const body = {
      type,
      data: (await readJson('--data', data, cwd)) as never,
      ...(application === undefined ? {} : { application }),
      ...(key === undefined ? {} : { idempotencyKey: key }),
    };
    return ok(await client.call(publishMessage, { body }));
  },
  text({ id, duplicate, endpoints }: ReplyOf<typeof publishMessage>) {
    if (duplicate) return `${id} was sent before.`;
    return `${id} is stored for ${endpoints} ${endpoints === 1 ? 'endpoint' : 'endpoints'}.`;
  },
});
