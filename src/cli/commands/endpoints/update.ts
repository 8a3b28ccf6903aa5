import { z } from 'zod';
import { type OutgoingEndpoint, updateEndpoint } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { endpointArg, settingFlags, settingsOf } from './endpoint-args.ts';
import { endpointFacts } from './endpoint-text.ts';

/** @spec docs/messages.md */
export const update = defineCommand({
  name: 'endpoints update',
  summary: 'Change settings of an endpoint; the others stay',
  example: 'svc endpoints update ep_01k8x2v7w9m4q5r6s7t8a9b0cd --rate 5',
  idField: 'id',
  args: z.object({
    id: endpointArg,
    target: z.string().optional().describe('URL that receives the messages').meta({ placeholder: 'url' }),
    ...settingFlags,
  }),
  async run({ id, target, ...flags }, { client, cwd }) {
    const body = { ...(target === undefined ? {} : { url: target }), ...(await settingsOf(flags, cwd)) };
    if (Object.keys(body).length === 0) throw new UsageError('Pass at least one setting, such as --rate 5.');
    return ok(await client.call(updateEndpoint, { params: { id }, body }));
  },
  text: (endpoint: OutgoingEndpoint, style) => endpointFacts(endpoint, style),
});
