import { seconds } from '../../../../kit/time/duration.ts';
import { type UpstreamCall, type UpstreamClient, UpstreamTimeoutError } from './client.ts';
import { type ConnectionEvents, type Exchange, UpstreamConnection } from './connection.ts';

export interface LoopbackClientOptions {
  /** The shortest timeout of all routes, which determines how often deadlines are checked. */
  timeoutMs: number;
}

/**
 * Idle timeout, shorter than the keep-alive timeout of services (60 s). If a service closed an idle connection first, a
 * request sent at that moment would fail.
 */
const IDLE_TIMEOUT_MS = seconds(20);
/** Methods whose requests can safely be sent again if the upstream closes the connection before the response. */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS']);
const MAX_SWEEP_MS = 1000;
const MIN_SWEEP_MS = 10;

/**
 * HTTP client for services on this machine. Uses half the CPU time of undici. The client has no connection limit,
 * because the limit on client connections already bounds the number of concurrent requests.
 */
export class LoopbackClient implements UpstreamClient {
  readonly #pools = new Map<string, ConnectionPool>();
  readonly #sweeper: NodeJS.Timeout;

  constructor({ timeoutMs }: LoopbackClientOptions) {
    const sweepMs = Math.max(MIN_SWEEP_MS, Math.min(MAX_SWEEP_MS, timeoutMs / 4));
    this.#sweeper = setInterval(() => this.#sweep(), sweepMs);
    this.#sweeper.unref();
  }

  send(request: Exchange['request'], handler: Exchange['handler']): UpstreamCall {
    const exchange: Exchange = {
      request,
      handler,
      deadline: 0,
      begun: false,
      answered: false,
      connection: undefined,
    };
    this.#poolOf(request.origin).send(exchange);
    return {
      resume: () => exchange.connection?.resume(),
      abort: () => exchange.connection?.destroy(),
    };
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    for (const pool of this.#pools.values()) pool.close();
    this.#pools.clear();
  }

  #poolOf(origin: string): ConnectionPool {
    let pool = this.#pools.get(origin);
    if (!pool) {
      pool = new ConnectionPool(origin);
      this.#pools.set(origin, pool);
    }
    return pool;
  }

  #sweep(): void {
    const now = performance.now();
    for (const pool of this.#pools.values()) pool.sweep(now);
  }
}

/** Keep-alive connections to one origin. */
class ConnectionPool implements ConnectionEvents {
  readonly #host: string;
  readonly #port: number;
  readonly #idle: UpstreamConnection[] = [];
  readonly #open = new Set<UpstreamConnection>();

  constructor(origin: string) {
    const { hostname, port } = new URL(origin);
    this.#host = hostname.replace(/^\[|\]$/g, '');
    this.#port = Number(port || 80);
  }

  send(exchange: Exchange): void {
    this.#dispatch(exchange, this.#idle.pop() ?? this.#connect());
  }

  /** Fails exchanges whose deadline has passed, and closes connections that have been idle for too long. */
  sweep(now: number): void {
    for (const connection of this.#open) {
      const { exchange } = connection;
      if (!exchange || exchange.answered || exchange.deadline > now) continue;
      connection.destroy();
      exchange.handler.onError(new UpstreamTimeoutError());
    }
    while (this.#idle[0] && now - this.#idle[0].idleSince > IDLE_TIMEOUT_MS) this.#idle[0].destroy();
  }

  close(): void {
    for (const connection of this.#open) connection.destroy();
  }

  onIdle(connection: UpstreamConnection): void {
    connection.idleSince = performance.now();
    this.#idle.push(connection);
  }

  onLost(connection: UpstreamConnection, exchange: Exchange | undefined, error: Error): void {
    this.#open.delete(connection);
    const index = this.#idle.lastIndexOf(connection);
    if (index !== -1) this.#idle.splice(index, 1);
    if (!exchange) return;
    const { request, begun, answered, handler } = exchange;
    // The upstream might have closed a reused connection before reading the request. In this case, the request is sent
    // again if nothing was written or a repeat has no side effects.
    const mayRepeat = !begun || (!answered && !request.body && REPEATABLE.has(request.method));
    if (connection.used && mayRepeat) this.#dispatch(exchange, this.#connect());
    else handler.onError(error);
  }

  #connect(): UpstreamConnection {
    const connection = new UpstreamConnection(this.#host, this.#port, this);
    this.#open.add(connection);
    return connection;
  }

  #dispatch(exchange: Exchange, connection: UpstreamConnection): void {
    exchange.deadline = performance.now() + exchange.request.timeoutMs;
    connection.send(exchange);
  }
}
