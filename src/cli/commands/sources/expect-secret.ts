import { z } from 'zod';
import { expectSourceSecret, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { pairs } from '../../table.ts';
import { nameArg } from './source-args.ts';

/** @spec docs/webhooks.md "Handshakes" */
export const expectSourceSecretCommand = defineCommand({
  name: 'sources expect-secret',
  summary: 'Accept one secret that the sender hands over within the next minutes',
  example: 'svc sources expect-secret tasks --minutes 5',
  args: z.object({
    name: nameArg,
    minutes: z.coerce.number().int().min(1).max(60).default(10).describe('time that the sender has'),
  }),
  async run({ name, minutes }, { client, ui }) {
    const reply = await client.call(expectSourceSecret, { params: { name }, body: { minutes } });
    ui.note('Create the webhook at the sender now. The first secret that arrives at the URL is stored.');
    return ok(reply);
  },
  text: ({ url, expiresAt }: ReplyOf<typeof expectSourceSecret>, style) =>
    pairs(
      [
        ['url', url],
        ['open until', new Date(expiresAt).toISOString()],
      ],
      style,
    ),
});
