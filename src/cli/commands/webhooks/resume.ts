import { z } from 'zod';
import { resumeWebhook } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { targetArgs, targetBody } from './target-args.ts';

/** @spec docs/webhooks.md "Pause" */
export const resume = defineCommand({
  name: 'webhooks resume',
  summary: 'Resume a paused webhook, starting with held deliveries',
  example: 'svc webhooks resume github push',
  args: z.object(targetArgs),
  run: async (target, { client }) => ok(await client.call(resumeWebhook, { body: targetBody(target) })),
  text: () => 'Resumed. Held deliveries run now.',
});
