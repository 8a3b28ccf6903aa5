import type { Duplex } from 'node:stream';
import { LIMITS } from '../../../contracts/index.ts';
import type { ClientSideOf } from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { createFairShares, type FairShares } from '../../../kit/limits/fair-shares.ts';
import { traceparentOf } from '../../../kit/telemetry/trace.ts';
import { type Clock, every } from '../../../kit/time/clock.ts';
import { minutes } from '../../../kit/time/duration.ts';
import type { Principal } from '../domain/identity/authenticator.ts';
import type { Revocations } from '../domain/identity/revocations.ts';
import type { CountUpstreamRequest } from '../metrics.ts';
import type { ClientUpgrade } from './client-upgrade.ts';
import { createRequestHeaders } from './request-headers.ts';
import { DROPPED_FROM_ANSWERS } from './response-headers.ts';
import { openTunnel, type Tunnel } from './tunnel.ts';
import { clientHead, relayRefusal, requestUpgrade } from './upgrade.ts';
import { upstreamError } from './upstream/index.ts';
import type { Upstream } from './upstreams.ts';

export interface SocketProxyDeps {
  internalSecret: string;
  timeoutMs: number;
  revocations: Pick<Revocations, 'isRevoked' | 'onRevoked'>;
  count: CountUpstreamRequest;
  clock: Clock;
  clientSideOf: ClientSideOf;
  /** Open at a time, shared between the tenants; default 4,000. */
  maxOpen?: number;
}

export interface ProxySocket {
  /** Asks the upstream for the upgrade on the caller's behalf and joins the sockets; the status the client got. */
  join(upstream: Upstream, upgrade: ClientUpgrade): Promise<number>;
  closeAll(): void;
}

/** WebSocket close codes of our own (4000 to 4999) and of the protocol. */
const EXPIRED = 4401;
const REVOKED = 4403;
const GOING_AWAY = 1001;

/** Each costs two file descriptors. */
const MAX_OPEN = 4000;
/** A tunnel that moves nothing either way for so long is closed: its client may be gone without a word. */
const IDLE_MINUTES = 10;

/** Its body passes as it is framed. */
const DROPPED_FROM_REFUSALS = new Set(
  [...DROPPED_FROM_ANSWERS].filter((name) => name !== 'transfer-encoding'),
);

/** WebSockets through the gateway. One whose token expires, or is revoked with its host, is closed: it would not be let in now. */
export function createSocketProxy(deps: SocketProxyDeps): ProxySocket {
  const { revocations, count, timeoutMs, clock, maxOpen = MAX_OPEN } = deps;
  const headersFor = createRequestHeaders(deps.internalSecret);
  const open = new Map<Tunnel, Principal>();
  const shares = createFairShares(maxOpen);
  const stopSweeping = every(clock, minutes(1), createIdleSweep(open));

  revocations.onRevoked(() => {
    for (const [tunnel, caller] of open) if (revocations.isRevoked(caller)) tunnel.close(REVOKED, 'revoked');
  });

  /** Joins the two and watches over the token that let the client in. */
  function join(client: Duplex, upstream: Duplex, caller: Principal): void {
    let stopWatching = (): void => {};
    const tunnel = openTunnel(client, upstream, {
      maxMessageBytes: LIMITS.webSocketMessageBytes,
      clock,
      onClosed() {
        open.delete(tunnel);
        shares.release(caller.namespaceId);
        stopWatching();
      },
    });
    open.set(tunnel, caller);
    if (Number.isFinite(caller.expiresAt)) {
      const leftMs = caller.expiresAt - clock.now();
      stopWatching = clock.after(leftMs, () => tunnel.close(EXPIRED, 'the token has expired'));
    }
    // It may have been revoked while the upstream was asked.
    if (revocations.isRevoked(caller)) tunnel.close(REVOKED, 'revoked');
  }

  async function ask(upstream: Upstream, { request, caller, requestId, traceId, spanId }: ClientUpgrade) {
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
      const { namespaceId } = upgrade.caller;
      if (!shares.take(namespaceId)) throw tooManyOpen(namespaceId, shares);
      try {
        const status = await joined(upstream, upgrade);
        if (status !== 101) shares.release(namespaceId);
        return status;
      } catch (error) {
        shares.release(namespaceId);
        throw error;
      }
    },
    closeAll() {
      stopSweeping();
      for (const tunnel of open.keys()) tunnel.close(GOING_AWAY, 'the gateway is stopping');
    },
  };

  async function joined(upstream: Upstream, upgrade: ClientUpgrade): Promise<number> {
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
    // Read as what follows it: its frames are checked too.
    if (head.length > 0) client.unshift(head);
    join(client, answer.socket, caller);
    if (answer.rest.length > 0) answer.socket.unshift(answer.rest);
    answer.socket.resume();
    return 101;
  }
}

/** Closes tunnels of which nothing moved between so many calls. Counted in calls, so that a set clock closes none. */
function createIdleSweep(open: ReadonlyMap<Tunnel, unknown>): () => void {
  const seen = new WeakMap<Tunnel, { bytes: number; quiet: number }>();
  return () => {
    for (const tunnel of open.keys()) {
      const { bytes } = tunnel;
      const former = seen.get(tunnel);
      const quiet = former?.bytes === bytes ? former.quiet + 1 : 0;
      seen.set(tunnel, { bytes, quiet });
      if (quiet >= IDLE_MINUTES) tunnel.close(GOING_AWAY, `idle for ${IDLE_MINUTES} minutes`);
    }
  };
}

function tooManyOpen(namespaceId: string, { free, count }: FairShares): PlatformError {
  if (free === 0)
    return new PlatformError(
      'SERVICE_UNAVAILABLE',
      `All ${count} WebSockets of this gateway are in use; try again later.`,
    );
  return new PlatformError(
    'RATE_LIMIT_EXCEEDED',
    `The namespace "${namespaceId}" has its share of the ${count} WebSockets of this gateway; close one of its sockets, or try again later.`,
    { details: { namespaceId }, headers: { 'retry-after': '5' } },
  );
}

const CLIENT_LEFT = 499;
