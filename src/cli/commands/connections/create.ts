import { z } from 'zod';
import {
  ClientAuthMethod,
  CONNECTION_PROVIDER_IDS,
  type Connection,
  createConnection,
  SecretName,
} from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { readJson } from '../../json-flag.ts';
import { UsageError } from '../../parse-args.ts';
import { awaitAuthorization } from './await-authorization.ts';
import { nameArg, noWaitFlag, readClientSecret, scopesFlag, scopesOf } from './connection-args.ts';
import { authorizingText } from './connection-text.ts';

const url = (what: string) => z.string().optional().describe(what).meta({ placeholder: 'url' });

/** @spec docs/connections.md */
export const create = defineCommand({
  name: 'connections create',
  summary: 'Create an OAuth 2 connection, and wait until a person authorizes it',
  example: 'svc connections create crm --provider hubspot --client-id 1234 --secret CRM_CLIENT',
  args: z.object({
    name: nameArg,
    clientId: z
      .string()
      .optional()
      .describe('id of the OAuth client at the provider')
      .meta({ placeholder: 'id' }),
    provider: z.enum(CONNECTION_PROVIDER_IDS).optional().describe('provider of the catalogue'),
    issuer: url('issuer whose discovery document names the endpoints'),
    authorizeUrl: url('authorization endpoint, instead of a provider'),
    tokenUrl: url('token endpoint, instead of a provider'),
    revocationUrl: url('revocation endpoint'),
    secretStdin: z.boolean().default(false).describe('read the client secret from stdin'),
    secret: SecretName.optional()
      .describe('stored secret with the client secret')
      .meta({ placeholder: 'name' }),
    clientAuth: ClientAuthMethod.optional().describe(
      'how the client sends its secret; default: by the provider',
    ),
    scopes: scopesFlag,
    variables: z
      .string()
      .optional()
      .describe('variables of the provider as JSON, such as {"host":"git.example"}')
      .meta({ placeholder: 'json' }),
    params: z
      .string()
      .optional()
      .describe('further parameters of the authorization request as JSON')
      .meta({ placeholder: 'json' }),
    noWait: noWaitFlag,
  }),
  async run(
    { name, clientId, provider, clientAuth, scopes, secretStdin, secret, noWait, ...flags },
    context,
  ) {
    if (clientId === undefined)
      throw new UsageError('Pass --client-id, the id of the OAuth client at the provider.', {
        hint: `svc connections create ${name} --provider github --client-id <id>`,
      });
    const endpoints = endpointsOf(flags);
    if ((provider === undefined) === (endpoints === undefined))
      throw new UsageError('Pass either --provider, or --issuer, or --authorize-url and --token-url.', {
        hint: `svc connections create ${name} --client-id ${clientId} --issuer https://id.example.com`,
      });
    const { client, cwd, globals } = context;
    const body = {
      ...{ name, clientId },
      ...(provider ? { provider } : { endpoints }),
      ...(clientAuth === undefined ? {} : { clientAuth }),
      ...scopesOf(scopes),
      ...(flags.variables === undefined
        ? {}
        : { variables: (await readJson('--variables', flags.variables, cwd)) as never }),
      ...(flags.params === undefined
        ? {}
        : { authorizationParams: (await readJson('--params', flags.params, cwd)) as never }),
      ...(await readClientSecret(secretStdin, secret, 'create')),
    };
    const created = await client.call(createConnection, { body });
    return ok<Connection>(noWait || globals.json ? created : await awaitAuthorization(created, context));
  },
  text: authorizingText,
});

interface EndpointFlags {
  issuer?: string | undefined;
  authorizeUrl?: string | undefined;
  tokenUrl?: string | undefined;
  revocationUrl?: string | undefined;
}

function endpointsOf({ issuer, authorizeUrl, tokenUrl, revocationUrl }: EndpointFlags) {
  const given = { issuer, authorizationUrl: authorizeUrl, tokenUrl, revocationUrl };
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  return set.length === 0 ? undefined : (Object.fromEntries(set) as Record<keyof typeof given, string>);
}
