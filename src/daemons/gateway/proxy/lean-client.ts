import { seconds } from '../../../kit/duration.ts';
import {
  type ConnectionEvents,
  type Exchange,
  type LeanConnection,
  openConnection,
} from './lean-connection.ts';
import { type UpstreamClient, UpstreamTimeoutError } from './upstream-client.ts';

export interface LeanClientOptions {
  /** The shortest time-out of a call; deadlines are looked at four times in it. */
  timeoutMs: number;
}

/** Shorter than the minute for which our daemons keep idle connections, so that it is we who close. */
const IDLE_MS = seconds(20);
/** Those that may be sent again when a kept-alive connection turns out to be closing. */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS']);

interface Pool {
  idle: LeanConnection[];
  open: Set<LeanConnection>;
}

/**
 * Upstream calls over kept-alive sockets of our own: half of what undici costs a request. For plain HTTP to daemons on
 * this machine; what it reads it reads strictly (response-parser.ts). No pipelining, no limit of its own: there are as
 * many connections as there are calls at once, which the clients' connections bound.
 */
export function createLeanClient({ timeoutMs }: LeanClientOptions): UpstreamClient {
  const pools = new Map<string, Pool>();
  const watch = setInterval(sweep, Math.max(10, Math.min(1000, timeoutMs / 4)));
  watch.unref();

  function poolOf(origin: string): Pool {
    let pool = pools.get(origin);
    if (!pool) {
      pool = { idle: [], open: new Set() };
      pools.set(origin, pool);
    }
    return pool;
  }

  function open(origin: string, pool: Pool): LeanConnection {
    const { hostname, port } = new URL(origin);
    const events: ConnectionEvents = {
      onIdle(connection) {
        connection.idleSince = performance.now();
        pool.idle.push(connection);
      },
      onLost(connection, exchange, error) {
        pool.open.delete(connection);
        const index = pool.idle.lastIndexOf(connection);
        if (index !== -1) pool.idle.splice(index, 1);
        if (exchange) settleLost(connection, exchange, error);
      },
    };
    const host = hostname.replace(/^\[|\]$/g, '');
    const connection = openConnection({ host, port: Number(port || 80), events });
    pool.open.add(connection);
    return connection;
  }

  function settleLost(connection: LeanConnection, exchange: Exchange, error: Error): void {
    const { request, begun, answered, handler } = exchange;
    // The other side closed an idle connection while this request was on its way: it was never looked at.
    const mayRepeat = !begun || (!answered && !request.body && REPEATABLE.has(request.method));
    if (connection.used && mayRepeat) dispatch(exchange, open(request.origin, poolOf(request.origin)));
    else handler.onError(error);
  }

  function dispatch(exchange: Exchange, connection: LeanConnection): void {
    exchange.deadline = performance.now() + exchange.request.timeoutMs;
    connection.send(exchange);
  }

  function sweep(): void {
    const now = performance.now();
    for (const { idle, open: connections } of pools.values()) {
      for (const connection of connections) {
        const { exchange } = connection;
        if (!exchange || exchange.answered || exchange.deadline > now) continue;
        connection.destroy();
        exchange.handler.onError(new UpstreamTimeoutError());
      }
      while (idle[0] && now - idle[0].idleSince > IDLE_MS) idle[0].destroy();
    }
  }

  return {
    send(request, handler) {
      const pool = poolOf(request.origin);
      const exchange: Exchange = {
        request,
        handler,
        deadline: 0,
        begun: false,
        answered: false,
        connection: undefined,
      };
      dispatch(exchange, pool.idle.pop() ?? open(request.origin, pool));
      return {
        resume: () => exchange.connection?.resume(),
        abort: () => exchange.connection?.destroy(),
      };
    },
    async close() {
      clearInterval(watch);
      for (const { open: connections } of pools.values())
        for (const connection of connections) connection.destroy();
      pools.clear();
    },
  };
}
