import { z } from 'zod';
import { getEndpoint, type OutgoingEndpoint } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { endpointArg } from './endpoint-args.ts';
import { endpointFacts } from './endpoint-text.ts';

/** @spec docs/messages.md */
export const show = defineCommand({
  name: 'endpoints show',
  summary: 'Show an endpoint with its settings and its state',
  example: 'svc endpoints show ep_01k8x2v7w9m4q5r6s7t8a9b0cd',
  idField: 'id',
  args: z.object({ id: endpointArg }),
  run: async ({ id }, { client }) => ok(await client.call(getEndpoint, { params: { id } })),
  text: (endpoint: OutgoingEndpoint, style) => endpointFacts(endpoint, style),
});
