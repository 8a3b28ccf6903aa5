import { z } from 'zod';
import { authorizeConnection, type Connection } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { awaitAuthorization } from './await-authorization.ts';
import { nameArg, noWaitFlag } from './connection-args.ts';
import { authorizingText } from './connection-text.ts';

/** @spec docs/connections.md */
export const authorize = defineCommand({
  name: 'connections authorize',
  summary: 'Make a new link to authorize a connection, and wait until a person opens it',
  example: 'svc connections authorize crm',
  args: z.object({ name: nameArg, noWait: noWaitFlag }),
  async run({ name, noWait }, context) {
    const { client, globals } = context;
    const link = await client.call(authorizeConnection, { params: { name } });
    return ok<Connection>(noWait || globals.json ? link : await awaitAuthorization(link, context));
  },
  text: authorizingText,
});
