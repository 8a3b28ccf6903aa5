import { z } from 'zod';
import { expectSecret, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { pairs } from '../../table.ts';
import { targetArgs, targetBody } from './target-args.ts';

/** @spec docs/webhooks.md "Handshakes" */
export const expectSecretCommand = defineCommand({
  name: 'webhooks expect-secret',
  summary: 'Accept one secret that the sender hands over within the next minutes',
  example: 'svc webhooks expect-secret tasks changed --minutes 5',
  args: z.object({
    ...targetArgs,
    minutes: z.coerce.number().int().min(1).max(60).default(10).describe('time that the sender has'),
  }),
  async run({ minutes, ...target }, { client, ui }) {
    const reply = await client.call(expectSecret, { body: { ...targetBody(target), minutes } });
    ui.note('Create the webhook at the sender now. The first secret that arrives at the URL is stored.');
    return ok(reply);
  },
  text: ({ url, expiresAt }: ReplyOf<typeof expectSecret>, style) =>
    pairs(
      [
        ['url', url],
        ['open until', new Date(expiresAt).toISOString()],
      ],
      style,
    ),
});
