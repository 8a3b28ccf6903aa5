import { z } from 'zod';
import { updateEndpoint } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { endpointArg } from './endpoint-args.ts';

/** @spec docs/messages.md */
export const enable = defineCommand({
  name: 'endpoints enable',
  summary: 'Enable an endpoint; its dead letters can be sent again',
  example: 'svc endpoints enable ep_01k8x2v7w9m4q5r6s7t8a9b0cd',
  idField: 'id',
  args: z.object({ id: endpointArg }),
  run: async ({ id }, { client }) =>
    ok(await client.call(updateEndpoint, { params: { id }, body: { disabled: false } })),
  text: () => 'Enabled. Send dead letters again with `svc endpoints replay`.',
});
