import { z } from 'zod';
import { type ReplyOf, replaySource } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { destinationFlag, nameArg } from './source-args.ts';

/** @spec docs/sources.md */
export const replay = defineCommand({
  name: 'sources replay',
  summary: 'Deliver a received request again, to all destinations or to one',
  example: 'svc sources replay payments 0198b2de-7c4e-7d5a-b0d2-5b0f5a0e8f11 --destination app',
  args: z.object({
    name: nameArg,
    id: z.uuid().describe('id of the delivery that the source received'),
    destination: destinationFlag,
  }),
  async run({ name, id, destination }, { client }) {
    const body = { webhookId: id, ...(destination === undefined ? {} : { destination }) };
    return ok(await client.call(replaySource, { params: { name }, body }));
  },
  text: ({ webhookId }: ReplyOf<typeof replaySource>) => `Replayed as ${webhookId}.`,
});
