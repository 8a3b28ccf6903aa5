import type { Duplex } from 'node:stream';
import { LIMITS } from '../../../contracts/index.ts';
import type { ClientSideOf } from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { createFairShares, type FairShares } from '../../../kit/limits/fair-shares.ts';
import { traceparentOf } from '../../../kit/telemetry/trace.ts';
import { type Clock, every } from '../../../kit/time/clock.ts';
import { minutes } from '../../../kit/time/duration.ts';
import type { SocketCutOff } from '../domain/access/socket-access.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { Principal } from '../domain/identity/authenticator.ts';
import type { CountUpstreamRequest } from '../metrics.ts';
import type { ClientUpgrade } from './client-upgrade.ts';
import { createRequestHeaders } from './request-headers.ts';
import { Tunnel } from './tunnel.ts';
import { acceptUpgrade, relayRefusal } from './upgrade-answer.ts';
import { requestUpgrade, type UpgradeAnswer, upstreamError } from './upstream/index.ts';
import type { Upstream } from './upstreams.ts';

export interface SocketProxyDeps {
  internalSecret: string;
  admins: Pick<Admins, 'is'>;
  timeoutMs: number;
  revocations: SocketCutOff;
  count: CountUpstreamRequest;
  clock: Clock;
  clientSideOf: ClientSideOf;
  /** Maximum number of open WebSockets, shared fairly between tenants. */
  maxOpen?: number;
}

/** WebSocket close codes. Code 1001 is standard. Codes 4000 to 4999 are for private use (RFC 6455 7.4). */
const EXPIRED = 4401;
const REVOKED = 4403;
const GOING_AWAY = 1001;

/** Default of `maxOpen`. Each WebSocket uses two file descriptors. */
const MAX_OPEN = 4000;
/** Idle WebSockets are closed, because clients can disappear without closing their connections. */
const IDLE_TIMEOUT_MINUTES = 10;
/** Status logged when the client disconnects (nginx convention). */
const CLIENT_CLOSED_REQUEST = 499;

/**
 * Connects WebSockets to upstreams. Closes a WebSocket when its token expires, or when the token or its host is
 * revoked.
 */
export class SocketProxy {
  readonly #deps: SocketProxyDeps;
  readonly #headersFor: ReturnType<typeof createRequestHeaders>;
  readonly #open = new Map<Tunnel, Principal>();
  readonly #shares: FairShares;
  readonly #stopSweeping: () => void;

  constructor(deps: SocketProxyDeps) {
    const { internalSecret, admins, revocations, clock, maxOpen = MAX_OPEN } = deps;
    this.#deps = deps;
    this.#headersFor = createRequestHeaders(internalSecret, admins);
    this.#shares = createFairShares(maxOpen);
    this.#stopSweeping = every(clock, minutes(1), createIdleSweep(this.#open));
    revocations.onRevoked(() => this.#closeRevoked());
  }

  /** Forwards an upgrade request to the upstream. Resolves with the response status sent to the client. */
  async join(upstream: Upstream, upgrade: ClientUpgrade): Promise<number> {
    const { namespaceId } = upgrade.caller;
    if (!this.#shares.take(namespaceId)) throw tooManyOpen(namespaceId, this.#shares);
    let isJoined = false;
    try {
      const answer = await this.#request(upstream, upgrade);
      this.#deps.count(upstream.name, answer.status);
      const status = this.#relay(upgrade, answer);
      isJoined = status === 101;
      return status;
    } finally {
      // The slot of a connected WebSocket is released when its tunnel closes.
      if (!isJoined) this.#shares.release(namespaceId);
    }
  }

  closeAll(): void {
    this.#stopSweeping();
    for (const tunnel of this.#open.keys()) tunnel.close(GOING_AWAY, 'the gateway is stopping');
  }

  async #request(upstream: Upstream, upgrade: ClientUpgrade): Promise<UpgradeAnswer> {
    const { request, caller, requestId, traceId, spanId } = upgrade;
    const { clientSideOf, timeoutMs, count } = this.#deps;
    const clientSide = clientSideOf(request);
    const headers = this.#headersFor({
      rawHeaders: request.rawHeaders,
      // The client's `Connection: Upgrade` is not forwarded, because `requestUpgrade` adds a new `Connection` header.
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

  #relay({ socket: client, head, caller, requestId }: ClientUpgrade, answer: UpgradeAnswer): number {
    if (client.destroyed) {
      answer.socket.destroy();
      return CLIENT_CLOSED_REQUEST;
    }
    if (answer.status !== 101) {
      relayRefusal(client, answer, requestId);
      return answer.status;
    }
    acceptUpgrade(client, answer, requestId);
    // `head` can contain WebSocket frames. The bytes are put back into the stream, so that the tunnel checks these
    // frames too.
    if (head.length > 0) client.unshift(head);
    this.#openTunnel(client, answer.socket, caller);
    if (answer.rest.length > 0) answer.socket.unshift(answer.rest);
    answer.socket.resume();
    return answer.status;
  }

  #openTunnel(client: Duplex, upstream: Duplex, caller: Principal): void {
    const { clock, revocations } = this.#deps;
    let cancelExpiry = (): void => {};
    const tunnel = new Tunnel(client, upstream, {
      maxMessageBytes: LIMITS.webSocketMessageBytes,
      clock,
      onClosed: () => {
        this.#open.delete(tunnel);
        this.#shares.release(caller.namespaceId);
        cancelExpiry();
      },
    });
    this.#open.set(tunnel, caller);
    if (Number.isFinite(caller.expiresAt)) {
      const leftMs = caller.expiresAt - clock.now();
      cancelExpiry = clock.after(leftMs, () => tunnel.close(EXPIRED, 'the token has expired'));
    }
    // The token might have been revoked while the upstream was answering.
    if (revocations.isRevoked(caller)) tunnel.close(REVOKED, 'revoked');
  }

  #closeRevoked(): void {
    for (const [tunnel, caller] of this.#open)
      if (this.#deps.revocations.isRevoked(caller)) tunnel.close(REVOKED, 'revoked');
  }
}

/**
 * Creates a function that closes idle tunnels. The function must be called once a minute. The function counts its calls
 * instead of reading the clock, so clock changes have no effect.
 */
function createIdleSweep(open: ReadonlyMap<Tunnel, unknown>): () => void {
  const seen = new WeakMap<Tunnel, { bytes: number; quiet: number }>();
  return () => {
    for (const tunnel of open.keys()) {
      const { bytes } = tunnel;
      const former = seen.get(tunnel);
      const quiet = former?.bytes === bytes ? former.quiet + 1 : 0;
      seen.set(tunnel, { bytes, quiet });
      if (quiet >= IDLE_TIMEOUT_MINUTES) tunnel.close(GOING_AWAY, `idle for ${IDLE_TIMEOUT_MINUTES} minutes`);
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
