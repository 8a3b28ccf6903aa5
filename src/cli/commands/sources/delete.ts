import { z } from 'zod';
import { deleteSource } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { nameArg } from './source-args.ts';

/** @spec docs/sources.md */
export const deleteCommand = defineCommand({
  name: 'sources delete',
  summary: 'Delete a source with its destinations and its secret',
  example: 'svc sources delete payments',
  args: z.object({ name: nameArg }),
  run: async ({ name }, { client }) => ok(await client.call(deleteSource, { params: { name } })),
  text: () => 'Deleted. Its recorded deliveries stay.',
});
