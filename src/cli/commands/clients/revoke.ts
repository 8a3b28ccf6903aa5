import { z } from 'zod';
import { revokeClient } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';

/** @spec Client credentials and token pair */
export const revoke = defineCommand({
  name: 'clients revoke',
  summary: 'Revoke a client with its credentials and tokens, effective immediately',
  example: 'svc clients revoke client_01b8dac5',
  args: z.object({ client: z.string().min(1).describe('client id') }),
  run: async ({ client: clientId }, { client }) =>
    ok(await client.call(revokeClient, { params: { clientId } })),
  text: () => 'Revoked. Its credentials and tokens no longer work.',
});
