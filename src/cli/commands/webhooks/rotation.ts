import { z } from 'zod';
import { getWebhookRotation, type WebhookRotation } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { table } from '../../table.ts';
import { timeText } from '../../time-text.ts';
import { targetArgs, targetBody } from './target-args.ts';

/** @spec docs/webhooks.md "Provision and rotate" */
export const rotation = defineCommand({
  name: 'webhooks rotation',
  summary: 'Show which senders still use the previous secret of a webhook',
  example: 'svc webhooks rotation github push',
  args: z.object(targetArgs),
  positionals: ['plugin', 'event'],
  run: async (target, { client }) => ok(await client.call(getWebhookRotation, { query: targetBody(target) })),
  text({ rotatedAt, previousExpiresAt, senders, ...counts }: WebhookRotation, style) {
    if (rotatedAt === null) return 'The webhook has no secret.';
    const expiry =
      previousExpiresAt === null
        ? 'There is no previous secret.'
        : `The previous secret expires at ${timeText(previousExpiresAt)}.`;
    const rows = senders.map(({ source, previous, current, latest, latestAt }) => [
      source,
      shareText({ previous, current }),
      latest === 'previous' ? style.red(latest) : latest,
      timeText(latestAt),
    ]);
    return [
      `Provisioned at ${timeText(rotatedAt)}.`,
      expiry,
      `Deliveries with the previous secret: ${shareText(counts)}.`,
      ...(counts.complete ? [] : ['Only the newest 2,000 deliveries of the event are counted.']),
      ...(rows.length === 0 ? [] : ['', table(['sender', 'previous', 'latest', 'at'], rows, style)]),
    ].join('\n');
  },
});

/** Formats the share of the previous secret, such as `3 of 12 (25%)`. */
function shareText({ previous, current }: { previous: number; current: number }): string {
  const total = previous + current;
  return total === 0 ? '0 of 0' : `${previous} of ${total} (${Math.round((100 * previous) / total)}%)`;
}
