import { z } from 'zod';
import { revokeHost } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';

/** @spec Gateway: authentication and hosts */
export const revoke = defineCommand({
  name: 'hosts revoke',
  summary: 'Revoke a host: its client id, tokens and socket are refused at once',
  example: 'svc hosts revoke host_01b8dac5',
  args: z.object({ host: z.string().min(1).describe("the host's id") }),
  run: async ({ host }, { client }) => ok(await client.call(revokeHost, { params: { hostId: host } })),
  text: () => 'Revoked. Nothing of this host is accepted any more.',
});
