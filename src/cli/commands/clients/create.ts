import { z } from 'zod';
import { createClientCredentials, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { selectedNamespace } from '../../selected-namespace.ts';
import { pairs } from '../../table.ts';

/** @spec Client credentials and token pair */
export const create = defineCommand({
  name: 'clients create',
  summary: 'Create client credentials for POST /auth/token',
  example: 'svc clients create nightly-import --namespace acme',
  idField: 'clientId',
  args: z.object({ name: z.string().min(1).max(128).describe('name shown in lists') }),
  async run({ name }, { client, globals, ui }) {
    const namespaceId = selectedNamespace(globals);
    const reply = await client.call(createClientCredentials, {
      body: { name, ...(namespaceId ? { namespaceId } : {}) },
    });
    ui.warn('Copy the secret now; it is shown only once.');
    return ok(reply);
  },
  text: ({ clientId, clientSecret, hostId, namespaceId }: ReplyOf<typeof createClientCredentials>, style) =>
    pairs(
      [
        ['client id', clientId],
        ['client secret', clientSecret],
        ['host id', hostId],
        ['namespace', namespaceId],
      ],
      style,
    ),
});
