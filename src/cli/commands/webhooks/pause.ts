import { z } from 'zod';
import { pauseWebhook, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { targetArgs, targetBody } from './target-args.ts';

/** @spec docs/webhooks.md "Pause" */
export const pause = defineCommand({
  name: 'webhooks pause',
  summary: 'Stop calling a handler: async deliveries are held, sync ones answered 503',
  example: 'svc webhooks pause github push',
  args: z.object(targetArgs),
  run: async (target, { client }) => ok(await client.call(pauseWebhook, { body: targetBody(target) })),
  text: ({ holds }: ReplyOf<typeof pauseWebhook>) =>
    holds
      ? 'Paused. Deliveries are accepted and held until `svc webhooks resume`.'
      : 'Paused. Senders are answered 503 and asked to come back, until `svc webhooks resume`.',
});
