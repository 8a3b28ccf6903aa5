import OpenAI from 'openai';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { Random } from '../../kit/security/random.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { seconds } from '../../kit/time/duration.ts';
import { Attempt } from './attempt.ts';
import { failureOf } from './library-error.ts';
import { isTransient, type RemoteFailure, toCallError } from './remote-error.ts';

export interface EndpointOptions {
  /** Name of the adapter, for error messages. */
  adapter: 'llm' | 'embeddings';
  baseUrl: string;
  apiKey: string | undefined;
  /** Time limit of one attempt. In a streamed response, each chunk restarts the time limit. */
  timeoutMs: number;
  maxAttempts: number;
  maxResponseBytes: number;
  clock: Clock;
  random: Random;
}

const FIRST_WAIT_MS = 500;
/** Longest wait before a retry. A call fails at once if the endpoint's `Retry-After` header requests a longer wait. */
const MAX_WAIT_MS = seconds(30);
/** Timeout of the OpenAI library, too long to ever fire. `Attempt` enforces the actual time limit. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * An OpenAI-compatible HTTP endpoint. Its methods throw the errors listed at `LanguageModel`, or the abort reason if
 * the request is aborted.
 */
export class ModelEndpoint {
  readonly #options: EndpointOptions;
  readonly #host: string;

  constructor(options: EndpointOptions) {
    this.#options = options;
    this.#host = new URL(options.baseUrl).host;
  }

  /** Sends a request and returns the parsed response. Transient errors are retried. */
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
    return this.#parsed(() => read(answer));
  }

  /**
   * Yields the parsed chunks of a streamed response. Retries transient errors that occur before the response starts.
   */
  async *stream<Value>(
    signal: AbortSignal,
    request: (client: OpenAI) => Promise<AsyncIterable<unknown>>,
    read: (chunk: unknown) => Value,
  ): AsyncGenerator<Value> {
    const { attempt, chunks } = await this.#retried(signal, () => this.#open(signal, request));
    try {
      for await (const chunk of chunks) yield this.#parsed(() => read(chunk));
      // The OpenAI library ends an aborted stream without an error, so the recorded error is thrown here.
      if (attempt.failure) throw attempt.failure;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw this.#toCallError(this.#explained(error, attempt), 1);
    } finally {
      attempt.end();
    }
  }

  /** Converts an invalid response into the error that the plugin receives. */
  invalidResponse(failure: RemoteFailure): PlatformError {
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

  /** Sets every option explicitly, because the OpenAI library reads missing options from environment variables. */
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
        if (tries >= maxAttempts || !isTransient(failure) || waitMs > MAX_WAIT_MS)
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

  /** Parses a response. Converts a parse error into the error that the plugin receives. */
  #parsed<Value>(read: () => Value): Value {
    try {
      return read();
    } catch (error) {
      throw this.#toCallError(failureOf(error, this.#options.clock.now()), 1);
    }
  }
}

/** Waits for `ms` milliseconds. Rejects with the signal's reason as soon as the signal aborts. */
function wait(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      stop();
      reject(signal.reason);
    };
    const stop = clock.after(ms, () => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    });
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
