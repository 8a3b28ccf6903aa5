import { z } from 'zod';
import { deleteEndpoint } from '../../../contracts/index.ts';
import { CancelledError, confirm } from '../../confirm.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { endpointArg } from './endpoint-args.ts';

/** @spec docs/messages.md */
export const deleteCommand = defineCommand({
  name: 'endpoints delete',
  summary: 'Delete an endpoint; its waiting messages are cancelled',
  example: 'svc endpoints delete ep_01k8x2v7w9m4q5r6s7t8a9b0cd --yes',
  args: z.object({ id: endpointArg }),
  async run({ id }, context) {
    if (!(await confirm(context, `Delete the endpoint ${id} and its secret?`))) throw new CancelledError();
    return ok(await context.client.call(deleteEndpoint, { params: { id } }));
  },
  text: () => 'Deleted. The records of its messages stay.',
});
