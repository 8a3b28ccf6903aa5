import OpenAI from 'openai';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { Random } from '../../kit/security/random.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { seconds } from '../../kit/time/duration.ts';
import { Attempt } from './attempt.ts';
import { failureOf } from './library-error.ts';
import { mayPass, type RemoteFailure, toCallError } from './remote-error.ts';

export interface EndpointOptions {
  /** Adapter name for error messages. */
  adapter: 'llm' | 'embeddings';
  baseUrl: string;
  apiKey: string | undefined;
  /** Time limit of one attempt; for a stream, between two chunks. */
  timeoutMs: number;
  maxAttempts: number;
  maxResponseBytes: number;
  clock: Clock;
  random: Random;
}

const FIRST_WAIT_MS = 500;
/** A longer Retry-After is not awaited: the handler has its own time limit. */
const MAX_WAIT_MS = seconds(30);
/** Keeps the library's own timeout, which uses another clock, from firing first. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;

/** An OpenAI-compatible HTTP endpoint. Throws PlatformErrors (see LanguageModel) or the signal's reason. */
export class ModelEndpoint {
  readonly #options: EndpointOptions;
  readonly #host: string;

  constructor(options: EndpointOptions) {
    this.#options = options;
    this.#host = new URL(options.baseUrl).host;
  }

  /** Returns a whole response; retries transient errors. */
  async whole<Value>(
    signal: AbortSignal,
    request: (client: OpenAI) => Promise<unknown>,
    read: (answer: unknown) => Value,
  ): Promise<Value> {
    const answer = await this.#retried(signal, async () => {
      const attempt = this.#attempt(signal, false);
      try {
        return await request(this.#client(attempt));
      } catch (error) {
        throw this.#explained(error, attempt);
      } finally {
        attempt.end();
      }
    });
    return this.#called(() => read(answer));
  }

  /** Retries until the response starts; then yields its chunks as they arrive, without retries. */
  async *stream<Value>(
    signal: AbortSignal,
    request: (client: OpenAI) => Promise<AsyncIterable<unknown>>,
    read: (chunk: unknown) => Value,
  ): AsyncGenerator<Value> {
    const { attempt, chunks } = await this.#retried(signal, () => this.#open(signal, request));
    try {
      for await (const chunk of chunks) yield this.#called(() => read(chunk));
      // The library ends an aborted stream without an error.
      if (attempt.failure) throw attempt.failure;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw this.#toCallError(this.#explained(error, attempt), 1);
    } finally {
      attempt.end();
    }
  }

  /** Returns the error for an invalid response. */
  broken(failure: RemoteFailure): PlatformError {
    return toCallError(failure, this.#options.adapter, this.#host, 1);
  }

  async #open(signal: AbortSignal, request: (client: OpenAI) => Promise<AsyncIterable<unknown>>) {
    const attempt = this.#attempt(signal, true);
    try {
      return { attempt, chunks: await request(this.#client(attempt)) };
    } catch (error) {
      attempt.end();
      throw this.#explained(error, attempt);
    }
  }

  #attempt(signal: AbortSignal, isStream: boolean): Attempt {
    return new Attempt({ ...this.#options, isStream }, this.#options.clock, signal);
  }

  /** Sets every option that the library would read from an environment variable. */
  #client({ fetch }: Attempt): OpenAI {
    const { apiKey, baseUrl } = this.#options;
    return new OpenAI({
      baseURL: baseUrl.replace(/\/$/, ''),
      apiKey: apiKey ?? 'none',
      ...(apiKey === undefined ? { defaultHeaders: { authorization: null } } : {}),
      ...{ organization: null, project: null, adminAPIKey: null, webhookSecret: null },
      ...{ logLevel: 'off', maxRetries: 0, timeout: NO_TIMEOUT_MS, fetch },
    });
  }

  async #retried<Value>(signal: AbortSignal, attempt: () => Promise<Value>): Promise<Value> {
    const { clock, random, maxAttempts } = this.#options;
    for (let tries = 1; ; tries++) {
      try {
        return await attempt();
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (error instanceof PlatformError) throw error;
        const failure = error as RemoteFailure;
        const waitMs = failure.retryAfterMs ?? random.fraction() * FIRST_WAIT_MS * 2 ** tries;
        if (tries >= maxAttempts || !mayPass(failure) || waitMs > MAX_WAIT_MS)
          throw this.#toCallError(failure, tries);
        await wait(clock, waitMs, signal);
      }
    }
  }

  #explained(error: unknown, attempt: Attempt): PlatformError | RemoteFailure {
    return failureOf(attempt.failure ?? error, this.#options.clock.now());
  }

  #toCallError(failure: PlatformError | RemoteFailure, tries: number): PlatformError {
    if (failure instanceof PlatformError) return failure;
    return toCallError(failure, this.#options.adapter, this.#host, tries);
  }

  /** Converts errors of reading a response into errors for the plugin. */
  #called<Value>(read: () => Value): Value {
    try {
      return read();
    } catch (error) {
      throw this.#toCallError(failureOf(error, this.#options.clock.now()), 1);
    }
  }
}

/** Rejects early with the signal's reason. */
function wait(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      stop();
      reject(signal.reason);
    };
    const stop = clock.after(ms, () => {
      signal.removeEventListener('abort', leave);
      resolve();
    });
    signal.addEventListener('abort', leave, { once: true });
  });
}
