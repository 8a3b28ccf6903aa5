import { z } from 'zod';
import { getConnection } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { nameArg } from './connection-args.ts';
import { connectionText } from './connection-text.ts';

/** @spec docs/connections.md */
export const show = defineCommand({
  name: 'connections show',
  summary: 'Show a connection, without its tokens',
  example: 'svc connections show crm',
  args: z.object({ name: nameArg }),
  run: async ({ name }, { client }) => ok(await client.call(getConnection, { params: { name } })),
  text: connectionText,
});
