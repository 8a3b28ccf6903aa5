import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { SOCKET_ACCESS } from '../../../contracts/index.ts';
import {
  afterPendingResponses,
  type ClientSideOf,
  type HttpKit,
  idsOf,
  originForm,
  pathOf,
  protocolFault,
  type RequestIds,
  refuseUpgrade,
  requireValidRequest,
} from '../../../http/index.ts';
import { PlatformError, toPlatformError } from '../../../kit/errors/errors.ts';
import { requireAccess } from '../domain/access/require-access.ts';
import { actingNamespace } from '../domain/identity/acting-namespace.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { Authenticator } from '../domain/identity/authenticator.ts';
import { countedOf, type LimitRequests } from '../domain/request-limits.ts';
import type { ClientUpgrade, UpgradeHandler } from '../proxy/client-upgrade.ts';
import type { SocketProxy } from '../proxy/socket-proxy.ts';
import type { Upstream } from '../proxy/upstreams.ts';
import type { EdgeRouter } from './router.ts';

export interface UpgradesServices {
  authenticator: Authenticator;
  admins: Admins;
  limitRequests: LimitRequests | null;
  upstreams: readonly Upstream[];
  proxySocket: Pick<SocketProxy, 'join' | 'closeAll'>;
  clientSideOf: ClientSideOf;
  /** Maps the path of each WebSocket endpoint of the gateway, such as `/hosts/connect`, to its handler. */
  ownSockets: ReadonlyMap<string, UpgradeHandler>;
}

/** A WebSocket upgrade request that is being handled. */
interface Arrival extends RequestIds {
  request: IncomingMessage;
  socket: Duplex;
  head: Buffer;
  startedAt: number;
  /** Pattern of the matched route. */
  route: string;
  tenantId: string;
}

interface Target {
  route: string;
  /** Handles the upgrade. Resolves with the response status that was sent to the client. */
  handle(upgrade: ClientUpgrade): Promise<number>;
}

/**
 * Authenticates WebSocket upgrades and passes each upgrade to an upstream or to a handler in `ownSockets`. @spec
 * Authentication 8
 */
export class Upgrades {
  readonly #kit: HttpKit;
  readonly #router: EdgeRouter;
  readonly #services: UpgradesServices;

  constructor(kit: HttpKit, router: EdgeRouter, services: UpgradesServices) {
    this.#kit = kit;
    this.#router = router;
    this.#services = services;
  }

  readonly serve = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const ids = idsOf(request.headers, this.#kit.random);
    const startedAt = performance.now();
    const arrival: Arrival = { ...ids, request, socket, head, startedAt, route: '(none)', tenantId: '' };
    // Without an `error` listener, a connection reset by the client would end the process.
    socket.on('error', () => socket.destroy());
    afterPendingResponses(socket, () => {
      this.#handle(arrival).then(
        (status) => this.#account(arrival, status),
        (error) => this.#refuse(arrival, error),
      );
    });
  };

  async #handle(arrival: Arrival): Promise<number> {
    const { request, socket, head, requestId, traceId, spanId } = arrival;
    const { authenticator, admins, limitRequests, clientSideOf } = this.#services;
    request.url = originForm(request);
    const fault = protocolFault(request);
    if (fault) throw fault;
    requireValidRequest(request, this.#kit.checkHost);
    const target = this.#targetOf(request);
    arrival.route = target.route;
    const { ip } = clientSideOf(request);
    const { rawHeaders, headers } = request;
    const caller = await authenticator.authenticate({ rawHeaders, requestId, traceId, ip });
    arrival.tenantId = caller.namespaceId;
    await limitRequests?.(countedOf(headers, caller, ip));
    const acting = actingNamespace(headers, caller, admins);
    const call = { method: 'GET', route: target.route, requestId, traceId };
    requireAccess(acting, SOCKET_ACCESS, call, this.#kit.logger);
    return target.handle({ request, socket, head, caller: acting, requestId, traceId, spanId, ip });
  }

  #targetOf(request: IncomingMessage): Target {
    const { ownSockets, proxySocket } = this.#services;
    const path = pathOf(request.url!);
    if (!path.startsWith('/')) throw new PlatformError('VALIDATION_ERROR', 'The request target is no path.');
    requireWebSocket(request);
    const route = this.#router.find('GET', request.url!)?.route;
    const own = route && ownSockets.get(route.pattern);
    if (own) return { route: route.pattern, handle: (upgrade) => served(own, upgrade) };
    if (route?.kind !== 'proxied' || !route.upstream.websocket)
      throw new PlatformError('NOT_FOUND', `There is no WebSocket at ${path.slice(0, 200)}.`);
    const { upstream, pattern } = route;
    return { route: pattern, handle: (upgrade) => proxySocket.join(upstream, upgrade) };
  }

  #refuse(arrival: Arrival, thrown: unknown): void {
    const { socket, requestId, traceId } = arrival;
    const error = toPlatformError(thrown);
    if (error.status >= 500)
      this.#kit.logger.error(`An upgrade failed: ${error.message}`, { requestId, traceId, error: thrown });
    refuseUpgrade(socket, error, requestId);
    this.#account(arrival, error.status);
  }

  #account(
    { request, route, startedAt, requestId, traceId, spanId, tenantId }: Arrival,
    status: number,
  ): void {
    const { traceparent } = request.headers;
    const ids = { requestId, traceId, spanId };
    this.#kit.accountAnswered({ ...ids, method: 'GET', route, status, startedAt, tenantId, traceparent });
  }
}

async function served(handler: UpgradeHandler, upgrade: ClientUpgrade): Promise<number> {
  await handler(upgrade);
  return 101;
}

const WEBSOCKET_VERSION = '13';

function requireWebSocket({ method, headers, httpVersionMinor }: IncomingMessage): void {
  const key = headers['sec-websocket-key'];
  const valid = method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && typeof key === 'string';
  if (!valid)
    throw new PlatformError(
      'VALIDATION_ERROR',
      'This is not a WebSocket handshake (GET, Upgrade: websocket, Sec-WebSocket-Key).',
    );
  if (httpVersionMinor === 0)
    throw upgradeRequired('HTTP/1.0 has no upgrades; send the handshake as HTTP/1.1.');
  const version = headers['sec-websocket-version'];
  if (version !== WEBSOCKET_VERSION) {
    const sent = version === undefined ? 'is missing' : `is "${version.slice(0, 20)}"`;
    throw upgradeRequired(`Sec-WebSocket-Version ${sent}; send ${WEBSOCKET_VERSION}.`);
  }
  if (Number(headers['content-length'] ?? 0) > 0 || headers['transfer-encoding'] !== undefined) {
    throw new PlatformError('VALIDATION_ERROR', 'A WebSocket handshake has no body.');
  }
}

/** Returns a 426 error with the supported WebSocket version (RFC 6455, section 4.4). */
function upgradeRequired(message: string): PlatformError {
  return new PlatformError('UPGRADE_REQUIRED', message, {
    headers: { upgrade: 'websocket', 'sec-websocket-version': WEBSOCKET_VERSION },
  });
}
