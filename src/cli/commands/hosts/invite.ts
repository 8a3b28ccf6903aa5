import { z } from 'zod';
import { inviteHost, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { selectedNamespace } from '../../selected-namespace.ts';
import { pairs } from '../../table.ts';
import { timeText } from '../../time-text.ts';

/** @spec Host agent registration */
export const invite = defineCommand({
  name: 'hosts invite',
  summary: 'Create an enrolment token for one machine, valid for 15 minutes',
  example: 'svc hosts invite --namespace acme',
  args: z.object({}),
  async run(_args, { client, globals, ui }) {
    const namespaceId = selectedNamespace(globals);
    const body = namespaceId ? { namespaceId } : {};
    const reply = await client.call(inviteHost, { body });
    ui.warn('Copy the token now; it is shown only once.');
    return ok(reply);
  },
  text: ({ token, namespaceId, expiresAt }: ReplyOf<typeof inviteHost>, style) =>
    pairs(
      [
        ['token', token],
        ['namespace', namespaceId],
        ['expires', timeText(expiresAt)],
      ],
      style,
    ),
});
