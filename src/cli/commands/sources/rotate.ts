import { z } from 'zod';
import { type ReplyOf, rotateSource } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { pairs } from '../../table.ts';
import { nameArg, readSecret, secretFlag } from './source-args.ts';

/** @spec docs/sources.md */
export const rotate = defineCommand({
  name: 'sources rotate',
  summary: 'Replace the secret, or the token in the URL, of a source',
  example: 'svc sources rotate payments',
  args: z.object({ name: nameArg, secretStdin: secretFlag }),
  async run({ name, secretStdin }, { client, ui }) {
    const body = await readSecret(secretStdin);
    const reply = await client.call(rotateSource, { params: { name }, body });
    ui.note('The previous secret or URL remains valid for 24 hours.');
    return ok(reply);
  },
  text: ({ url, secret }: ReplyOf<typeof rotateSource>, style) =>
    pairs([['url', url], ...(secret === '' ? [] : [['secret', secret] as [string, string]])], style),
});
