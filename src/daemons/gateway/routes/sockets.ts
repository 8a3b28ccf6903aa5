import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import {
  type ClientSideOf,
  type Http,
  idsOf,
  originForm,
  pathOf,
  refuseUpgrade,
  requireValidRequest,
} from '../../../http/index.ts';
import { PlatformError, toPlatformError } from '../../../kit/errors.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { Authenticator, Principal } from '../domain/identity/authenticator.ts';
import type { LimitRequests } from '../domain/request-limits.ts';
import type { ProxySocket } from '../proxy/socket-proxy.ts';
import { type Upstream, upstreamFor } from '../proxy/upstreams.ts';
import { actingNamespace } from './acting-namespace.ts';
import { countedOf } from './counted.ts';

/** An upgrade that has been authenticated. */
export interface Upgrade {
  request: IncomingMessage;
  socket: Duplex;
  /** What came right behind the request. */
  head: Buffer;
  caller: Principal;
  requestId: string;
  traceId: string;
  spanId: string;
  ip: string;
}

/** Serves an upgrade itself; throws or rejects with what the client is to be told. */
export type UpgradeHandler = (upgrade: Upgrade) => void | Promise<void>;

export interface SocketRoutesServices {
  authenticator: Authenticator;
  admins: Admins;
  limitRequests: LimitRequests | null;
  upstreams: readonly Upstream[];
  proxySocket: ProxySocket;
  clientSideOf: ClientSideOf;
  /** Upgrades that the gateway serves itself, by path: `/hosts/connect`. */
  ownSockets: Map<string, UpgradeHandler>;
}

/** WebSockets: authenticated by the upgrade request as any other, then joined to the upstream. @spec Authentication 8 */
export function socketRoutes(http: Http, services: SocketRoutesServices): void {
  const { kit } = http;
  http.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const startedAt = performance.now();
    const { requestId, traceId, spanId } = idsOf(request.headers, kit.random);
    let tenantId = '';
    let route = '(none)';

    function account(status: number): void {
      const durationMs = performance.now() - startedAt;
      kit.metrics.observeRequest('GET', route, status, durationMs);
      kit.logger.access('GET', route, status, durationMs, { requestId, traceId, tenantId, spanId });
    }
    async function serve(): Promise<void> {
      request.url = originForm(request);
      requireValidRequest(request, kit.checkHost);
      const target = targetOf(request, services);
      route = target.route;
      const { ip } = services.clientSideOf(request);
      const caller = await services.authenticator.authenticate({
        rawHeaders: request.rawHeaders,
        requestId,
        traceId,
        ip,
      });
      tenantId = caller.namespaceId;
      await services.limitRequests?.(countedOf(request, caller, ip));
      const upgrade = {
        request,
        socket,
        head,
        caller: actingNamespace(request, caller, services.admins),
        requestId,
        traceId,
        spanId,
        ip,
      };
      account(await target.handle(upgrade));
    }
    // A socket without this listener takes the process down when its client resets it.
    socket.on('error', () => socket.destroy());
    serve().catch((thrown) => {
      const error = toPlatformError(thrown);
      if (error.status >= 500)
        kit.logger.error(`An upgrade failed: ${error.message}`, { requestId, traceId, error: thrown });
      refuseUpgrade(socket, error, requestId);
      account(error.status);
    });
  });
  http.addHook('preClose', async () => services.proxySocket.closeAll());
}

interface Target {
  route: string;
  /** The status that the client was answered. */
  handle(upgrade: Upgrade): Promise<number>;
}

function targetOf(
  request: IncomingMessage,
  { upstreams, ownSockets, proxySocket }: SocketRoutesServices,
): Target {
  const path = pathOf(request.url ?? '');
  if (!path.startsWith('/')) throw new PlatformError('VALIDATION_ERROR', 'The request target is no path.');
  requireWebSocket(request);
  const own = ownSockets.get(path);
  if (own) {
    return {
      route: path,
      async handle(upgrade) {
        await own(upgrade);
        return 101;
      },
    };
  }
  const match = upstreamFor(upstreams, path);
  if (!match?.upstream.websocket)
    throw new PlatformError('NOT_FOUND', `There is no WebSocket at ${path.slice(0, 200)}.`);
  return { route: `${match.prefix}/*`, handle: (upgrade) => proxySocket.join(match.upstream, upgrade) };
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

/** 426 with the version that is spoken here (RFC 6455 4.4). */
function upgradeRequired(message: string): PlatformError {
  return new PlatformError('UPGRADE_REQUIRED', message, {
    headers: { upgrade: 'websocket', 'sec-websocket-version': WEBSOCKET_VERSION },
  });
}
