import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { z } from 'zod';
import {
  AlertChannelName,
  AlertChannelType,
  CHANNEL_SECRETS,
  createAlertChannel,
  type ReplyOf,
} from '../../../contracts/index.ts';
import { messageOf } from '../../../kit/errors/errors.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { readJson } from '../../json-flag.ts';
import { UsageError } from '../../parse-args.ts';
import { readSecret, secretFlag } from '../sources/source-args.ts';
import { everywhere, scopeOf } from './alert-args.ts';

/** @spec docs/alerts.md */
export const addChannel = defineCommand({
  name: 'alerts add-channel',
  summary: 'Add a channel of alerts; its secret comes from stdin',
  example: 'svc alerts add-channel ops --type webhook --target https://ops.example.com/alerts',
  args: z.object({
    name: AlertChannelName.describe('name of the channel'),
    type: AlertChannelType.optional().describe('type of the channel'),
    target: z
      .string()
      .optional()
      .describe('webhook: URL that receives the notifications')
      .meta({ placeholder: 'url' }),
    settings: z
      .string()
      .optional()
      .describe('further settings as JSON, such as host, from and to of a mail channel')
      .meta({ placeholder: 'json' }),
    caFile: z
      .string()
      .optional()
      .describe('email: PEM file of the authority that signed the certificate of the server')
      .meta({ placeholder: 'file' }),
    secretStdin: secretFlag,
    all: everywhere,
  }),
  positionals: ['name'],
  async run({ name, type, target, settings, caFile, secretStdin, all }, { client, cwd, ui }) {
    if (type === undefined)
      throw new UsageError('Pass --type.', {
        hint: `svc alerts add-channel ${name} --type slack --secret-stdin`,
      });
    const given = settings === undefined ? {} : ((await readJson('--settings', settings, cwd)) as object);
    const { secret } = await readSecret(secretStdin);
    const body = {
      ...{ ...given, name, type },
      ...(target === undefined ? {} : { url: target }),
      ...(caFile === undefined ? {} : { ca: await readPem(caFile, cwd) }),
      ...(secret === undefined ? {} : { [CHANNEL_SECRETS[type]]: secret }),
    };
    const reply = await client.call(createAlertChannel, { query: scopeOf(all), body: body as never });
    if (reply.secret !== null) ui.warn('Copy the secret now; it is shown only once.');
    return ok(reply);
  },
  text: ({ name, secret }: ReplyOf<typeof createAlertChannel>) =>
    `Added. Try it: svc alerts test --channel ${name}${secret === null ? '' : `\nsecret: ${secret}`}`,
});

async function readPem(file: string, cwd: string): Promise<string> {
  try {
    return await readFile(resolve(cwd, file), 'utf8');
  } catch (error) {
    throw new UsageError(`--ca-file cannot be read: ${messageOf(error)}`);
  }
}
