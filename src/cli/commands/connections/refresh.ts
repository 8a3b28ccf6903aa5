import { z } from 'zod';
import { refreshConnection } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { nameArg } from './connection-args.ts';
import { connectionText } from './connection-text.ts';

/** @spec docs/connections.md */
export const refresh = defineCommand({
  name: 'connections refresh',
  summary: 'Refresh the access token of a connection now',
  example: 'svc connections refresh crm',
  args: z.object({ name: nameArg }),
  run: async ({ name }, { client }) => ok(await client.call(refreshConnection, { params: { name } })),
  text: connectionText,
});
