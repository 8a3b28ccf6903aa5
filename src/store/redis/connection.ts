import { Redis } from 'ioredis';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import type { RedisScript } from './script.ts';

/** Time limits are short, so that requests do not wait long for an unreachable server. */
const CONNECT_TIMEOUT_MS = 1000;
const COMMAND_TIMEOUT_MS = 1000;
const MAX_RECONNECT_DELAY_MS = 500;

export type RedisArgument = string | number | Buffer;

/**
 * Connection to Redis or Valkey that reconnects automatically. While the server is unreachable, commands reject with
 * SERVICE_UNAVAILABLE at once.
 */
export class RedisConnection {
  /** Host, port and database without credentials, for use in messages. */
  readonly server: string;
  readonly #redis: Redis;

  private constructor(url: string, logger: Logger) {
    this.server = serverOf(url);
    this.#redis = new Redis(url, {
      lazyConnect: true,
      connectTimeout: CONNECT_TIMEOUT_MS,
      commandTimeout: COMMAND_TIMEOUT_MS,
      // A command is never repeated, because the server might have run the command before the connection broke.
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      enableOfflineQueue: false,
      retryStrategy: (attempt) => Math.min(50 * attempt, MAX_RECONNECT_DELAY_MS),
    });
    let isAway = false;
    this.#redis.on('error', (error: Error) => {
      if (!isAway) logger.warn(`Redis at ${this.server} cannot be reached; reconnecting`, { error });
      isAway = true;
    });
    this.#redis.on('ready', () => {
      if (isAway) logger.info(`Redis at ${this.server} can be reached again`);
      isAway = false;
    });
  }

  /**
   * Resolves when the server has answered or the first connection attempt has failed. Further attempts continue in the
   * background.
   */
  static async open(url: string, logger: Logger): Promise<RedisConnection> {
    const connection = new RedisConnection(url, logger);
    await connection.#redis.connect().catch(() => {});
    return connection;
  }

  /** Runs a Lua script. The server runs each script atomically. */
  run(script: RedisScript, keys: readonly string[], values: readonly RedisArgument[]): Promise<unknown> {
    return this.#send(async (redis) => {
      try {
        return await redis.evalsha(script.sha, keys.length, ...keys, ...values);
      } catch (error) {
        // After a restart, the server no longer has the cached script, so the full text is sent.
        if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error;
        return await redis.eval(script.text, keys.length, ...keys, ...values);
      }
    });
  }

  readField(key: string, field: string): Promise<string | null> {
    return this.#send((redis) => redis.hget(key, field));
  }

  async probe(): Promise<void> {
    await this.#send((redis) => redis.ping());
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
  }

  async #send<Reply>(command: (redis: Redis) => Promise<Reply>): Promise<Reply> {
    try {
      return await command(this.#redis);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new PlatformError(
        'SERVICE_UNAVAILABLE',
        `Redis at ${this.server} does not serve (${reason}). Start it, or check cache.url.`,
        { cause },
      );
    }
  }
}

function serverOf(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`;
}
