import { z } from 'zod';
import {
  ApplicationId,
  createPortalLink,
  durationMs,
  MAX_PORTAL_SECONDS,
  type ReplyOf,
  revokePortalLinks,
} from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { timeText } from '../../time-text.ts';

type Shown = Partial<ReplyOf<typeof createPortalLink>> & Partial<ReplyOf<typeof revokePortalLinks>>;

/** @spec docs/portal.md */
export const portal = defineCommand({
  name: 'endpoints portal',
  summary: 'Create a link with which a customer manages its endpoints',
  example: 'svc endpoints portal customer-7 --expires 1d',
  args: z.object({
    application: ApplicationId.describe('application of the customer'),
    expires: z.string().optional().describe('time until it ends: 30m, 12h, 7d; default 1h'),
    revoke: z.boolean().default(false).describe('end all links of the application instead'),
  }),
  async run({ application, expires, revoke }, { client, ui }) {
    if (revoke) {
      if (expires !== undefined) throw new UsageError('--expires does not go with --revoke.');
      return ok<Shown>(await client.call(revokePortalLinks, { query: { application } }));
    }
    const body = { application, ...(expires === undefined ? {} : { expiresInSeconds: secondsOf(expires) }) };
    const link = await client.call(createPortalLink, { body });
    ui.warn(`Everyone with the link can use it until ${timeText(link.expiresAt)}. It is shown only once.`);
    return ok<Shown>(link);
  },
  text: ({ url, revoked }: Shown) => url ?? `Revoked ${revoked} ${revoked === 1 ? 'link' : 'links'}.`,
});

function secondsOf(text: string): number {
  const seconds = (durationMs(text) ?? 0) / 1000;
  if (seconds >= 60 && seconds <= MAX_PORTAL_SECONDS) return seconds;
  throw new UsageError(`--expires ${text} is no duration from 1m to 7d, such as 12h.`);
}
