import { z } from 'zod';
import { type ReplyOf, rotateEndpoint } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { readSecret, secretFlag } from '../sources/source-args.ts';
import { endpointArg } from './endpoint-args.ts';

/** @spec docs/messages.md */
export const rotate = defineCommand({
  name: 'endpoints rotate',
  summary: 'Replace the secret of an endpoint; both sign for 24 hours',
  example: 'svc endpoints rotate ep_01k8x2v7w9m4q5r6s7t8a9b0cd',
  args: z.object({ id: endpointArg, secretStdin: secretFlag }),
  async run({ id, secretStdin }, { client, ui }) {
    const body = await readSecret(secretStdin, 'svc endpoints rotate <id> --secret-stdin');
    const reply = await client.call(rotateEndpoint, { params: { id }, body });
    ui.note('For 24 hours, messages are signed with the previous secret, too.');
    return ok(reply);
  },
  text: ({ secret }: ReplyOf<typeof rotateEndpoint>) => secret,
});
