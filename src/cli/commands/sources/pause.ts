import { z } from 'zod';
import { pauseSource } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { destinationFlag, nameArg } from './source-args.ts';

/** @spec docs/sources.md */
export const pause = defineCommand({
  name: 'sources pause',
  summary: 'Hold the deliveries of a source, or of one destination',
  example: 'svc sources pause payments --destination app',
  args: z.object({ name: nameArg, destination: destinationFlag }),
  async run({ name, destination }, { client }) {
    const body = destination === undefined ? {} : { destination };
    return ok(await client.call(pauseSource, { params: { name }, body }));
  },
  text: () => 'Paused. Deliveries are accepted and held until `svc sources resume`.',
});
