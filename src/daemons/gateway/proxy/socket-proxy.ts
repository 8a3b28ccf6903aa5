import type { Duplex } from 'node:stream';
import type { ClientSideOf } from '../../../http/index.ts';
import type { Clock } from '../../../kit/clock.ts';
import { traceparentOf } from '../../../kit/trace.ts';
import type { Principal } from '../domain/identity/authenticator.ts';
import type { Revocations } from '../domain/identity/revocations.ts';
import type { CountUpstreamRequest } from '../metrics.ts';
import type { Upgrade } from '../routes/sockets.ts';
import { createRequestHeaders } from './request-headers.ts';
import { DROPPED_FROM_ANSWERS } from './response-headers.ts';
import { openTunnel, type Tunnel } from './tunnel.ts';
import { clientHead, relayRefusal, requestUpgrade } from './upgrade.ts';
import { upstreamError } from './upstream-client.ts';
import type { Upstream } from './upstreams.ts';

export interface SocketProxyDeps {
  internalSecret: string;
  timeoutMs: number;
  revocations: Pick<Revocations, 'isRevoked' | 'onRevoked'>;
  count: CountUpstreamRequest;
  clock: Clock;
  clientSideOf: ClientSideOf;
}

export interface ProxySocket {
  /** Asks the upstream for the upgrade on the caller's behalf and joins the sockets; the status the client got. */
  join(upstream: Upstream, upgrade: Upgrade): Promise<number>;
  closeAll(): void;
}

/** WebSocket close codes of our own (4000 to 4999) and of the protocol. */
const EXPIRED = 4401;
const REVOKED = 4403;
const GOING_AWAY = 1001;

/** Its body passes as it is framed. */
const DROPPED_FROM_REFUSALS = new Set(
  [...DROPPED_FROM_ANSWERS].filter((name) => name !== 'transfer-encoding'),
);

/** WebSockets through the gateway. One whose token expires, or is revoked with its host, is closed: it would not be let in now. */
export function createSocketProxy(deps: SocketProxyDeps): ProxySocket {
  const { revocations, count, timeoutMs, clock } = deps;
  const headersFor = createRequestHeaders(deps.internalSecret);
  const open = new Map<Tunnel, Principal>();

  revocations.onRevoked(() => {
    for (const [tunnel, caller] of open) if (revocations.isRevoked(caller)) tunnel.close(REVOKED, 'revoked');
  });

  /** Joins the two and watches over the token that let the client in. */
  function join(client: Duplex, upstream: Duplex, caller: Principal): void {
    let stopWatching = (): void => {};
    const tunnel = openTunnel(client, upstream, () => {
      open.delete(tunnel);
      stopWatching();
    });
    open.set(tunnel, caller);
    if (Number.isFinite(caller.expiresAt)) {
      const leftMs = caller.expiresAt - clock.now();
      stopWatching = clock.after(leftMs, () => tunnel.close(EXPIRED, 'the token has expired'));
    }
    // It may have been revoked while the upstream was asked.
    if (revocations.isRevoked(caller)) tunnel.close(REVOKED, 'revoked');
  }

  async function ask(upstream: Upstream, { request, caller, requestId, traceId, spanId }: Upgrade) {
    const clientSide = deps.clientSideOf(request);
    const headers = headersFor({
      rawHeaders: request.rawHeaders,
      // `Upgrade` is what it names; the handshake is made anew.
      connection: undefined,
      caller,
      requestId,
      traceId,
      traceparent: traceparentOf(request.headers, traceId, spanId),
      forwardedFor: clientSide.ip,
      forwardedHost: clientSide.host,
      forwardedProto: clientSide.proto,
      contentLength: null,
    });
    try {
      const path = upstream.basePath + request.url!;
      return await requestUpgrade({ origin: upstream.origin(), path, headers, timeoutMs });
    } catch (error) {
      count(upstream.name, 'error');
      throw upstreamError(upstream.name, error as Error);
    }
  }

  return {
    async join(upstream, upgrade) {
      const { socket: client, head, caller, requestId } = upgrade;
      const answer = await ask(upstream, upgrade);
      count(upstream.name, answer.status);
      if (client.destroyed) {
        answer.socket.destroy();
        return CLIENT_LEFT;
      }
      if (answer.status !== 101) {
        relayRefusal(
          client,
          answer,
          clientHead(answer, DROPPED_FROM_REFUSALS, ['x-request-id', requestId, 'connection', 'close']),
        );
        return answer.status;
      }
      const own = ['x-request-id', requestId, 'connection', 'Upgrade', 'upgrade', 'websocket'];
      client.write(clientHead(answer, DROPPED_FROM_ANSWERS, own), 'latin1');
      if (head.length > 0) answer.socket.write(head);
      join(client, answer.socket, caller);
      if (answer.rest.length > 0) answer.socket.unshift(answer.rest);
      answer.socket.resume();
      return 101;
    },
    closeAll() {
      for (const tunnel of open.keys()) tunnel.close(GOING_AWAY, 'the gateway is stopping');
    },
  };
}

const CLIENT_LEFT = 499;
