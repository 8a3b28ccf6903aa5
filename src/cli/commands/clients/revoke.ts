import { z } from 'zod';
import { revokeClient } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';

/** @spec Client credentials and token pair */
export const revoke = defineCommand({
  name: 'clients revoke',
  summary: 'Revoke a client: its credentials and all of its tokens are refused at once',
  example: 'svc clients revoke client_01b8dac5',
  args: z.object({ client: z.string().min(1).describe("the client's id") }),
  run: async ({ client: clientId }, { client }) =>
    ok(await client.call(revokeClient, { params: { clientId } })),
  text: () => 'Revoked. Its credentials and tokens are refused from now on.',
});
