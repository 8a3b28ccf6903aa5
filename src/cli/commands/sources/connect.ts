import { z } from 'zod';
import { connectSource, type Destination, DestinationName } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { destinationBody, destinationFlags, nameArg } from './source-args.ts';
import { targetText } from './source-text.ts';

/** @spec docs/sources.md */
export const connect = defineCommand({
  name: 'sources connect',
  summary: 'Hand the deliveries of a source over to a URL, workflow, queue or command',
  example: 'svc sources connect payments --forward http://localhost:3000/hook',
  args: z.object({
    name: nameArg,
    as: DestinationName.optional().describe('name of the destination; default: the kind of its target'),
    ...destinationFlags,
  }),
  async run({ name, as, ...flags }, { client }) {
    const body = { ...(as ? { name: as } : {}), ...destinationBody(flags) };
    return ok(await client.call(connectSource, { params: { name }, body }));
  },
  text: (destination: Destination) => `Connected ${destination.name}: ${targetText(destination)}.`,
});
