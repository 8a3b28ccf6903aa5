import { z } from 'zod';
import {
  DestinationName,
  PROVIDER_IDS,
  type Source,
  updateDestination,
  updateSource,
} from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { authFlag, destinationBody, destinationFlags, nameArg, readAuth } from './source-args.ts';

/** @spec docs/sources.md */
export const update = defineCommand({
  name: 'sources update',
  summary: 'Change settings of a source, or of one of its destinations',
  example: 'svc sources update payments --destination app --filter \'event == "charge.failed"\'',
  args: z.object({
    name: nameArg,
    destination: DestinationName.optional().describe('destination to change, instead of the source'),
    provider: z.enum(PROVIDER_IDS).optional().describe('provider of the catalogue'),
    auth: authFlag,
    description: z.string().optional().describe('text for people'),
    ...destinationFlags,
  }),
  async run({ name, destination, provider, auth, description, ...flags }, { client, cwd }) {
    const ofDestination = destinationBody(flags);
    const ofSource = {
      ...(provider ? { provider } : {}),
      ...(await readAuth(auth, cwd)),
      ...(description === undefined ? {} : { description }),
    };
    const [wanted, other] = destination === undefined ? [ofSource, ofDestination] : [ofDestination, ofSource];
    if (Object.keys(other).length > 0)
      throw new UsageError(
        destination === undefined
          ? 'These flags change a destination. Name it with --destination.'
          : '--provider, --auth and --description change the source. Leave out --destination.',
      );
    if (Object.keys(wanted).length === 0) throw new UsageError('Pass at least one setting to change.');
    if (destination === undefined)
      return ok<Pick<Source, 'name'>>(await client.call(updateSource, { params: { name }, body: ofSource }));
    const params = { name, destination };
    return ok<Pick<Source, 'name'>>(await client.call(updateDestination, { params, body: ofDestination }));
  },
  text: ({ name }: Pick<Source, 'name'>) => `${name} is changed.`,
});
