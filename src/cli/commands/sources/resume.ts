import { z } from 'zod';
import { resumeSource } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { destinationFlag, nameArg } from './source-args.ts';

/** @spec docs/sources.md */
export const resume = defineCommand({
  name: 'sources resume',
  summary: 'Resume a source or one destination, starting with held deliveries',
  example: 'svc sources resume payments --destination app',
  args: z.object({ name: nameArg, destination: destinationFlag }),
  async run({ name, destination }, { client }) {
    const body = destination === undefined ? {} : { destination };
    return ok(await client.call(resumeSource, { params: { name }, body }));
  },
  text: () => 'Resumed.',
});
