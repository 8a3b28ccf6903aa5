import { z } from 'zod';
import { createClientCredentials, type ReplyOf, Scope } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { selectedNamespace } from '../../selected-namespace.ts';
import { pairs } from '../../table.ts';

/** @spec Client credentials and token pair */
export const create = defineCommand({
  name: 'clients create',
  summary: 'Create client credentials for POST /auth/token',
  example: 'svc clients create nightly-import --namespace acme',
  idField: 'clientId',
  args: z.object({
    name: z.string().min(1).max(128).describe('name shown in lists'),
    scope: z.array(Scope).default([]).describe('only permission of the client; repeatable'),
  }),
  async run({ name, scope }, { client, globals, ui }) {
    const namespaceId = selectedNamespace(globals);
    const reply = await client.call(createClientCredentials, {
      body: {
        name,
        ...(namespaceId ? { namespaceId } : {}),
        ...(scope.length > 0 ? { scopes: scope } : {}),
      },
    });
    ui.warn('Copy the secret now; it is shown only once.');
    return ok(reply);
  },
  text: (
    { clientId, clientSecret, hostId, namespaceId, scopes }: ReplyOf<typeof createClientCredentials>,
    style,
  ) =>
    pairs(
      [
        ['client id', clientId],
        ['client secret', clientSecret],
        ['host id', hostId],
        ['namespace', namespaceId],
        ...(scopes ? [['scopes', scopes.join(', ')] as [string, string]] : []),
      ],
      style,
    ),
});
