import { z } from 'zod';
import { pauseWebhook, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { targetArgs, targetBody } from './target-args.ts';

/** @spec docs/webhooks.md "Pause" */
export const pause = defineCommand({
  name: 'webhooks pause',
  summary: 'Pause a webhook: async deliveries are held, sync ones get 503',
  example: 'svc webhooks pause github push',
  args: z.object(targetArgs),
  run: async (target, { client }) => ok(await client.call(pauseWebhook, { body: targetBody(target) })),
  text: ({ holds }: ReplyOf<typeof pauseWebhook>) =>
    holds
      ? 'Paused. Deliveries are accepted and held until `svc webhooks resume`.'
      : 'Paused. Senders get 503 with Retry-After until `svc webhooks resume`.',
});
