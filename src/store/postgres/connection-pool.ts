import pg from 'pg';
import { codeOf, PlatformError } from '../../kit/errors/errors.ts';

export interface ConnectionPoolOptions extends pg.PoolConfig {
  /** Host, port and database, for use in messages. */
  server: string;
  max: number;
  /**
   * Time limit for opening a connection. Callers that wait for a free connection are also rejected if no caller
   * releases a connection for this time.
   */
  connectionTimeoutMillis: number;
  /** Maximum time that a caller waits for a free connection while other callers release connections. */
  maxWaitMs: number;
}

type ConnectCallback = NonNullable<Parameters<pg.Pool['connect']>[0]>;

interface Waiter {
  since: number;
  resolve(): void;
  reject(error: unknown): void;
}

const CHECK_MS = 500;
/** SQLSTATE of a server that has no free connection. Connections that are already open still work. */
const TOO_MANY_CONNECTIONS = '53300';

/**
 * Pool with its own queue of callers that wait for a free connection. In the queue of `pg`, the wait would count toward
 * the connection timeout, so writes would be rejected under high load.
 */
export class ConnectionPool extends pg.Pool {
  readonly #options: ConnectionPoolOptions;
  readonly #waiting: Waiter[] = [];
  readonly #taken = new Set<pg.PoolClient>();
  #free: number;
  /** Time of the latest grant or release of a connection, on the monotonic clock. */
  #progressAt = 0;
  #check: NodeJS.Timeout | undefined;

  constructor(options: ConnectionPoolOptions) {
    super(options);
    this.#options = options;
    this.#free = options.max;
    // Without a listener, a connection that is lost between two queries of its user would end the process.
    this.on('connect', (client) => client.on('error', () => {}));
    this.on('release', (_error, client) => {
      if (this.#taken.delete(client)) this.#leave();
    });
  }

  /** Connections in use, and callers that wait for one. */
  get use(): { inUse: number; waiting: number; limit: number } {
    const { max } = this.#options;
    return { inUse: max - this.#free, waiting: this.#waiting.length, limit: max };
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: ConnectCallback): void;
  override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | undefined {
    const connected = this.#connect();
    if (!callback) return connected;
    connected.then(
      (client) => callback(undefined, client, (error) => client.release(error)),
      (error) => callback(error, undefined, () => {}),
    );
    return undefined;
  }

  async #connect(): Promise<pg.PoolClient> {
    await this.#enter();
    try {
      const client = await super.connect();
      this.#taken.add(client);
      return client;
    } catch (error) {
      // No connection can be opened, so the waiting callers are rejected at once instead of failing later.
      if (codeOf(error) !== TOO_MANY_CONNECTIONS) this.#rejectAll(error);
      this.#leave();
      throw error;
    }
  }

  /** Waits for one of the `max` connections. */
  #enter(): Promise<void> | undefined {
    if (this.#free > 0) {
      this.#free--;
      this.#progressAt = performance.now();
      return undefined;
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ since: performance.now(), resolve, reject });
      this.#check ??= setInterval(() => this.#rejectLate(), CHECK_MS).unref();
    });
  }

  #leave(): void {
    this.#progressAt = performance.now();
    const next = this.#waiting.shift();
    if (next) next.resolve();
    else this.#free++;
    this.#stopIdleCheck();
  }

  #rejectLate(): void {
    const { server, connectionTimeoutMillis, maxWaitMs } = this.#options;
    const now = performance.now();
    if (now - this.#progressAt >= connectionTimeoutMillis)
      this.#rejectAll(stalled(server, connectionTimeoutMillis));
    while (this.#waiting[0] && now - this.#waiting[0].since >= maxWaitMs)
      this.#waiting.shift()!.reject(overloaded(server, maxWaitMs));
    this.#stopIdleCheck();
  }

  #rejectAll(error: unknown): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    this.#stopIdleCheck();
  }

  #stopIdleCheck(): void {
    if (this.#waiting.length > 0) return;
    clearInterval(this.#check);
    this.#check = undefined;
  }
}

function stalled(server: string, forMs: number): PlatformError {
  return new PlatformError(
    'STORE_ERROR',
    `PostgreSQL at ${server} has finished no statement for ${forMs / 1000} s, and all connections are in use. Check whether it is locked, cut off, or waits for a standby.`,
    { details: { server, reason: 'CONNECTIONS_STALLED' } },
  );
}

function overloaded(server: string, waitedMs: number): PlatformError {
  return new PlatformError(
    'STORE_ERROR',
    `PostgreSQL at ${server} is overloaded: a request waited ${waitedMs / 1000} s for a connection. Try again later, or give the server more resources.`,
    { details: { server, reason: 'CONNECTIONS_IN_USE' } },
  );
}
