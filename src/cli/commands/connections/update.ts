import { z } from 'zod';
import { ClientAuthMethod, SecretName, updateConnection } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { readJson } from '../../json-flag.ts';
import { UsageError } from '../../parse-args.ts';
import { nameArg, readClientSecret, scopesFlag, scopesOf } from './connection-args.ts';
import { connectionText } from './connection-text.ts';

/** @spec docs/connections.md "Change a connection" */
export const update = defineCommand({
  name: 'connections update',
  summary: 'Replace the client secret of a connection, or its scopes',
  example: 'svc connections update crm --secret CRM_CLIENT',
  args: z.object({
    name: nameArg,
    secretStdin: z.boolean().default(false).describe('read the new client secret from stdin'),
    secret: SecretName.optional()
      .describe('stored secret with the client secret')
      .meta({ placeholder: 'name' }),
    clientAuth: ClientAuthMethod.optional().describe('how the client sends its secret'),
    scopes: scopesFlag,
    params: z
      .string()
      .optional()
      .describe('further parameters of the authorization request as JSON')
      .meta({ placeholder: 'json' }),
  }),
  async run({ name, secretStdin, secret, clientAuth, scopes, params }, { client, cwd }) {
    const body = {
      ...(await readClientSecret(secretStdin, secret, 'update')),
      ...(clientAuth === undefined ? {} : { clientAuth }),
      ...scopesOf(scopes),
      ...(params === undefined
        ? {}
        : { authorizationParams: (await readJson('--params', params, cwd)) as never }),
    };
    if (Object.keys(body).length === 0)
      throw new UsageError(
        'Pass at least one of --secret-stdin, --secret, --client-auth, --scopes, --params.',
        {
          hint: `svc connections update ${name} --secret <name of a stored secret>`,
        },
      );
    return ok(await client.call(updateConnection, { params: { name }, body }));
  },
  text: connectionText,
});
