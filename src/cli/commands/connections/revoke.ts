import { z } from 'zod';
import { revokeConnection } from '../../../contracts/index.ts';
import { CancelledError, confirm } from '../../confirm.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { nameArg } from './connection-args.ts';

/** @spec docs/connections.md */
export const revoke = defineCommand({
  name: 'connections revoke',
  summary: 'Revoke the tokens of a connection, and keep the connection',
  example: 'svc connections revoke crm',
  args: z.object({ name: nameArg }),
  async run({ name }, context) {
    if (!(await confirm(context, `Revoke the tokens of "${name}"?`))) throw new CancelledError();
    return ok(await context.client.call(revokeConnection, { params: { name } }));
  },
  text: ({ revokedAtProvider }: { revokedAtProvider: boolean }) =>
    revocationText('Revoked.', revokedAtProvider),
});

export function revocationText(done: string, revokedAtProvider: boolean): string {
  return revokedAtProvider
    ? `${done} The provider has confirmed it.`
    : `${done} The provider has not confirmed the revocation: revoke the access in the account there.`;
}
