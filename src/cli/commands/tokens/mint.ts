import { z } from 'zod';
import { HostId, mintToken, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { selectedNamespace } from '../../selected-namespace.ts';
import { pairs } from '../../table.ts';
import { timeText } from '../../time-text.ts';

/** @spec docs/gateway.md "Who may call" */
export const mint = defineCommand({
  name: 'tokens mint',
  summary: 'Create an access token for a host id',
  example: 'svc tokens mint ci --namespace acme --ttl-seconds 86400',
  idField: 'jti',
  args: z.object({
    host: HostId.describe('identity of the token'),
    ttlSeconds: z.coerce.number().int().min(1).default(3600).describe('lifetime in seconds'),
  }),
  async run({ host, ttlSeconds }, { client, globals, ui }) {
    const namespaceId = selectedNamespace(globals);
    const reply = await client.call(mintToken, {
      body: { hostId: host, ttlSeconds, ...(namespaceId ? { namespaceId } : {}) },
    });
    ui.warn('Copy the token now; it is shown only once.');
    return ok(reply);
  },
  text: ({ token, jti, hostId, namespaceId, expiresAt }: ReplyOf<typeof mintToken>, style) =>
    pairs(
      [
        ['token', token],
        ['id', jti],
        ['host id', hostId],
        ['namespace', namespaceId],
        ['expires', timeText(expiresAt)],
      ],
      style,
    ),
});
