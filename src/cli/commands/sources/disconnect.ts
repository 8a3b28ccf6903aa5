import { z } from 'zod';
import { disconnectSource } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { destinationArg, nameArg } from './source-args.ts';

/** @spec docs/sources.md */
export const disconnect = defineCommand({
  name: 'sources disconnect',
  summary: 'Delete a destination; its waiting deliveries fail',
  example: 'svc sources disconnect payments app',
  args: z.object({ name: nameArg, destination: destinationArg }),
  run: async (params, { client }) => ok(await client.call(disconnectSource, { params })),
  text: () => 'Disconnected.',
});
