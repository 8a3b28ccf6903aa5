import { z } from 'zod';
import { revokeToken } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';

/** @spec docs/gateway.md "Who may call" */
export const revoke = defineCommand({
  name: 'tokens revoke',
  summary: 'Revoke a token, effective immediately',
  example: 'svc tokens revoke 01b8dac5-b400-78bd-9f09-db9b7052b656',
  args: z.object({ id: z.string().min(1).describe('token id from `svc tokens list`') }),
  run: async ({ id }, { client }) => ok(await client.call(revokeToken, { params: { jti: id } })),
  text: () => 'Revoked. The token no longer works.',
});
