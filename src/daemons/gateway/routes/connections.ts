import {
  authorizeConnection,
  connectionToken,
  createConnection,
  deleteConnection,
  getConnection,
  LIMITS,
  listConnectionProviders,
  listConnections,
  refreshConnection,
  revokeConnection,
  updateConnection,
} from '../../../contracts/index.ts';
import { type Http, mount, upstreamIdentity } from '../../../http/index.ts';
import { minutes } from '../../../kit/time/duration.ts';
import type { ConnectionAdmin } from '../domain/connections/connection-admin.ts';
import type { ConnectionTokens } from '../domain/connections/connection-tokens.ts';
import { connectionProviders } from '../domain/connections/provider/provider-views.ts';

export interface ConnectionRoutesServices {
  connectionAdmin: ConnectionAdmin;
  connectionTokens: ConnectionTokens;
  internalSecret: string;
}

const CHANGES_PER_MINUTE = 60;

/** @spec docs/connections.md */
export function connectionRoutes(http: Http, services: ConnectionRoutesServices): void {
  const { connectionAdmin: admin, connectionTokens, internalSecret } = services;
  const reading = { auth: 'caller', perMinute: LIMITS.webhookListsPerMinute * 10 } as const;
  const changing = {
    auth: 'caller',
    perMinute: {
      limiter: http.kit.createLimiter('connection changes', { windowMs: minutes(1) }),
      limit: CHANGES_PER_MINUTE,
    },
  } as const;
  const keyOf = ({ caller, params }: { caller: { namespaceId: string }; params: { name: string } }) => ({
    namespaceId: caller.namespaceId,
    name: params.name,
  });

  mount(http, listConnectionProviders, reading, () => ({ items: connectionProviders(), nextCursor: null }));
  mount(http, createConnection, changing, ({ caller, body, reply }) => {
    reply.header('cache-control', 'no-store');
    return admin.create(body, caller.namespaceId, caller.hostId);
  });
  mount(http, listConnections, reading, async ({ caller }) => ({
    items: await admin.list(caller.namespaceId),
    nextCursor: null,
  }));
  mount(http, getConnection, reading, (call) => admin.get(keyOf(call)));
  mount(http, updateConnection, changing, (call) => admin.update(keyOf(call), call.body));
  mount(http, authorizeConnection, changing, (call) => {
    call.reply.header('cache-control', 'no-store');
    return admin.authorize(keyOf(call), call.caller.hostId);
  });
  mount(http, refreshConnection, changing, (call) => admin.refresh(keyOf(call)));
  mount(http, revokeConnection, changing, (call) => admin.revoke(keyOf(call)));
  mount(http, deleteConnection, changing, (call) => admin.remove(keyOf(call)));

  const identify = upstreamIdentity({ internalSecret, mode: 'required', logger: http.kit.logger });
  mount(http, connectionToken, { auth: 'open' }, async ({ body, request, reply }) => {
    const { namespaceId } = await identify(request);
    reply.header('cache-control', 'no-store');
    return connectionTokens.token({ namespaceId, name: body.name });
  });
}
