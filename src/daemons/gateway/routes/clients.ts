import { createClientCredentials, listClients, revokeClient } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import type { Clients } from '../domain/identity/clients.ts';

/** @spec docs/gateway.md "Who may call" */
export function clientRoutes(http: Http, { clients }: { clients: Clients }): void {
  mount(http, createClientCredentials, { auth: 'caller' }, ({ body, caller, reply }) => {
    reply.header('cache-control', 'no-store');
    return clients.create(caller, body);
  });
  mount(http, listClients, { auth: 'caller' }, ({ query, caller }) => clients.list(caller, query));
  mount(http, revokeClient, { auth: 'caller' }, async ({ params, caller }) => {
    await clients.revoke(caller, params.clientId);
    return { revoked: true as const };
  });
}
