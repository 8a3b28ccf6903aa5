import { z } from 'zod';
import { createClientCredentials, type ReplyOf } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { namedNamespace } from '../../named-namespace.ts';
import { pairs } from '../../style.ts';

/** @spec Client credentials and token pair */
export const create = defineCommand({
  name: 'clients create',
  summary: 'Create client credentials, which POST /auth/token takes',
  example: 'svc clients create nightly-import --namespace acme',
  idField: 'clientId',
  args: z.object({ name: z.string().min(1).max(128).describe('what the list calls it') }),
  async run({ name }, { client, globals, ui }) {
    const namespaceId = namedNamespace(globals);
    const reply = await client.call(createClientCredentials, {
      body: { name, ...(namespaceId ? { namespaceId } : {}) },
    });
    ui.warn('Copy the secret now; it is shown once.');
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
