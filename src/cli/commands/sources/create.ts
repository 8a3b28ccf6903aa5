import { z } from 'zod';
import { createSource, PROVIDER_IDS, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';
import { pairs } from '../../table.ts';
import { authFlag, nameArg, readAuth, readSecret, secretFlag } from './source-args.ts';

/** @spec docs/sources.md */
export const create = defineCommand({
  name: 'sources create',
  summary: 'Create a URL that takes deliveries without a plugin',
  example: 'svc sources create payments --provider stripe',
  args: z.object({
    name: nameArg,
    provider: z.enum(PROVIDER_IDS).optional().describe('provider of the catalogue'),
    auth: authFlag,
    description: z.string().optional().describe('text for people'),
    secretStdin: secretFlag,
  }),
  async run({ name, provider, auth, description, secretStdin }, { client, cwd, ui }) {
    if ((provider === undefined) === (auth === undefined))
      throw new UsageError('Pass either --provider or --auth.', {
        hint: `svc sources create ${name} --auth '{"type":"token"}'`,
      });
    const body = {
      name,
      ...(provider ? { provider } : {}),
      ...(await readAuth(auth, cwd)),
      ...(description ? { description } : {}),
      ...(await readSecret(secretStdin)),
    };
    const reply = await client.call(createSource, { body });
    if (reply.secret !== '' || reply.auth === 'token')
      ui.warn('Copy the URL and the secret now; the secret is shown only once.');
    if (!reply.provisioned)
      ui.warn(`${provider} makes the secret: svc sources rotate ${name} --secret-stdin takes it from stdin.`);
    return ok(reply);
  },
  text: (reply: ReplyOf<typeof createSource>, style) =>
    pairs(
      [
        ['url', reply.url],
        ['secret', secretText(reply)],
      ],
      style,
    ),
});

function secretText({ secret, auth, provisioned }: ReplyOf<typeof createSource>): string {
  if (secret !== '') return secret;
  if (auth === 'token') return 'in the URL';
  return provisioned ? '(as provided)' : 'none yet';
}
