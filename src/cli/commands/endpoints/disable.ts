import { z } from 'zod';
import { updateEndpoint } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { endpointArg } from './endpoint-args.ts';

/** @spec docs/messages.md */
export const disable = defineCommand({
  name: 'endpoints disable',
  summary: 'Disable an endpoint; it receives nothing until it is enabled',
  example: 'svc endpoints disable ep_01k8x2v7w9m4q5r6s7t8a9b0cd',
  idField: 'id',
  args: z.object({ id: endpointArg }),
  run: async ({ id }, { client }) =>
    ok(await client.call(updateEndpoint, { params: { id }, body: { disabled: true } })),
  text: () => 'Disabled. Its messages become dead letters.',
});
