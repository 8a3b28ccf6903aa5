import { z } from 'zod';
import { type ReplyOf, Scope, setClientScopes } from '../../../contracts/index.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { UsageError } from '../../parse-args.ts';

/** @spec docs/gateway.md "Scopes" */
export const scopes = defineCommand({
  name: 'clients scopes',
  summary: 'Set the only permissions of a client, or remove the restriction',
  example: 'svc clients scopes client_01b8dac5 --scope deliveries:read',
  args: z.object({
    client: z.string().min(1).describe('client id'),
    scope: z.array(Scope).default([]).describe('allowed scope; repeatable'),
    all: z.boolean().default(false).describe('allow everything again'),
  }),
  async run({ client: clientId, scope, all }, { client }) {
    if (all === scope.length > 0) throw new UsageError('Give either --scope or --all.');
    return ok(
      await client.call(setClientScopes, { params: { clientId }, body: { scopes: all ? null : scope } }),
    );
  },
  text: ({ scopes: set }: ReplyOf<typeof setClientScopes>) =>
    set === null ? 'No scopes restrict the client.' : `The client may only: ${set.join(', ')}.`,
});
