import { z } from 'zod';
import { deleteConnection } from '../../../contracts/index.ts';
import { CancelledError, confirm } from '../../confirm.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { nameArg } from './connection-args.ts';
import { revocationText } from './revoke.ts';

/** @spec docs/connections.md */
export const deleteCommand = defineCommand({
  name: 'connections delete',
  summary: 'Revoke the tokens of a connection, and delete it',
  example: 'svc connections delete crm',
  args: z.object({ name: nameArg }),
  async run({ name }, context) {
    if (!(await confirm(context, `Delete the connection "${name}"?`))) throw new CancelledError();
    return ok(await context.client.call(deleteConnection, { params: { name } }));
  },
  text: ({ revokedAtProvider }: { revokedAtProvider: boolean }) =>
    revocationText('Deleted.', revokedAtProvider),
});
