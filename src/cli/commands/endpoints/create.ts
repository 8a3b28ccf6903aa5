import { z } from 'zod';
import { createEndpoint, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { pairs } from '../../table.ts';
import { readSecret, secretFlag } from '../sources/source-args.ts';
import { settingFlags, settingsOf } from './endpoint-args.ts';

/** @spec docs/messages.md */
export const create = defineCommand({
  name: 'endpoints create',
  summary: 'Create an endpoint that receives messages as signed webhooks',
  example: 'svc endpoints create https://example.com/hooks --type "order.*"',
  idField: 'id',
  args: z.object({
    url: z.string().describe('URL that receives the messages'),
    ...settingFlags,
    disabled: z.boolean().default(false).describe('receive nothing until it is enabled'),
    secretStdin: secretFlag,
  }),
  async run({ url, disabled, secretStdin, ...flags }, { client, cwd, ui }) {
    const secret = await readSecret(secretStdin, 'svc endpoints create <url> --secret-stdin');
    const body = { url, ...(await settingsOf(flags, cwd)), ...(disabled ? { disabled } : {}), ...secret };
    const reply = await client.call(createEndpoint, { body });
    ui.warn('Copy the secret now; it is shown only once.');
    return ok(reply);
  },
  text: ({ id, secret }: ReplyOf<typeof createEndpoint>, style) =>
    pairs(
      [
        ['endpoint', id],
        ['secret', secret],
      ],
      style,
    ),
});
