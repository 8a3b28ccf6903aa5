import { z } from 'zod';
import { revokeHost } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';

/** @spec Gateway: authentication and hosts */
export const revoke = defineCommand({
  name: 'hosts revoke',
  summary: 'Revoke a host with its client id, tokens and socket, effective immediately',
  example: 'svc hosts revoke host_01b8dac5',
  args: z.object({ host: z.string().min(1).describe('host id') }),
  run: async ({ host }, { client }) => ok(await client.call(revokeHost, { params: { hostId: host } })),
  text: () => "Revoked. The host's credentials no longer work and its sockets are closed.",
});
