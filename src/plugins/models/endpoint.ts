import { messageOf, PlatformError } from '../../kit/errors/errors.ts';
import type { Random } from '../../kit/security/random.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { seconds } from '../../kit/time/duration.ts';
import { connectionFailure, mayPass, RemoteFailure, statusFailure, toCallError } from './remote-error.ts';

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

/** An OpenAI-compatible HTTP endpoint. Throws PlatformErrors (see LanguageModel) or the signal's reason. */
export interface ModelEndpoint {
  /** Posts JSON and returns the JSON response; retries transient errors. */
  json(path: string, body: unknown, signal: AbortSignal): Promise<unknown>;
  /** Like `json` until the first byte; then yields bytes as they arrive, without retries. */
  bytes(path: string, body: unknown, signal: AbortSignal): AsyncGenerator<Uint8Array>;
}

const FIRST_WAIT_MS = 500;
/** A longer Retry-After is not awaited: the handler has its own time limit. */
const MAX_WAIT_MS = seconds(30);
const ERROR_BODY_BYTES = 16 * 1024;

export function createModelEndpoint(options: EndpointOptions): ModelEndpoint {
  const { adapter, apiKey, timeoutMs, maxAttempts, maxResponseBytes, clock, random } = options;
  const base = options.baseUrl.replace(/\/$/, '');
  const { host } = new URL(base);

  /**
   * Returns the response of one attempt once its headers arrived; the caller reads the body within `limit`.
   */
  async function post(path: string, text: string, limit: TimeLimit): Promise<Response> {
    const response = await fetch(base + path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
      },
      body: text,
      redirect: 'error',
      signal: limit.signal,
    });
    if (response.ok) return response;
    const said = await readText(response, ERROR_BODY_BYTES).catch(() => '');
    throw statusFailure(response.status, said, response.headers.get('retry-after'), clock.now());
  }

  async function withRetries<Value>(signal: AbortSignal, attempt: () => Promise<Value>): Promise<Value> {
    for (let tries = 1; ; tries++) {
      try {
        return await attempt();
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (error instanceof PlatformError) throw error;
        const failure = error instanceof RemoteFailure ? error : connectionFailure(error);
        const waitMs = failure.retryAfterMs ?? random.fraction() * FIRST_WAIT_MS * 2 ** tries;
        if (tries >= maxAttempts || !mayPass(failure) || waitMs > MAX_WAIT_MS)
          throw toCallError(failure, adapter, host, tries);
        await wait(clock, waitMs, signal);
      }
    }
  }

  return {
    json(path, body, signal) {
      const text = JSON.stringify(body);
      return withRetries(signal, () =>
        timeLimited(clock, timeoutMs, signal, async (limit) =>
          parse(await readText(await post(path, text, limit), maxResponseBytes)),
        ),
      );
    },
    async *bytes(path, body, signal) {
      const text = JSON.stringify(body);
      const limit = startTimeLimit(clock, timeoutMs, signal);
      try {
        const response = await withRetries(signal, async () => {
          limit.again();
          try {
            return await post(path, text, limit);
          } catch (error) {
            throw limit.explain(error);
          }
        });
        let size = 0;
        for await (const chunk of response.body ?? []) {
          limit.again();
          size += chunk.byteLength;
          if (size > maxResponseBytes) throw tooLarge(host, adapter, maxResponseBytes);
          yield chunk;
        }
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        const explained = limit.explain(error);
        if (explained instanceof PlatformError) throw explained;
        const failure = explained instanceof RemoteFailure ? explained : connectionFailure(explained);
        throw toCallError(failure, adapter, host, 1);
      } finally {
        // Also closes the connection of an abandoned stream.
        limit.end();
      }
    },
  };

  async function readText(response: Response, maxBytes: number): Promise<string> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      size += chunk.byteLength;
      if (size > maxBytes) throw tooLarge(host, adapter, maxBytes);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString('utf8');
  }
}

interface TimeLimit {
  /** Aborts on timeout, when the caller aborts, or when `end` is called. */
  signal: AbortSignal;
  /** Restarts the time limit. */
  again(): void;
  end(): void;
  /** Translates an abort by the time limit; returns other errors unchanged. */
  explain(error: unknown): unknown;
}

function startTimeLimit(clock: Clock, ms: number, caller: AbortSignal): TimeLimit {
  let late = new AbortController();
  const ended = new AbortController();
  let stop = (): void => {};
  const limit: TimeLimit = {
    get signal() {
      return AbortSignal.any([caller, late.signal, ended.signal]);
    },
    again() {
      stop();
      // A timed-out attempt must not abort the next one.
      if (late.signal.aborted) late = new AbortController();
      const current = late;
      stop = clock.after(ms, () => current.abort());
    },
    end() {
      stop();
      ended.abort();
    },
    explain: (error) =>
      late.signal.aborted && !caller.aborted
        ? new RemoteFailure('timeout', `nothing came for ${ms} ms`, { cause: error })
        : error,
  };
  return limit;
}

async function timeLimited<Value>(
  clock: Clock,
  ms: number,
  caller: AbortSignal,
  run: (limit: TimeLimit) => Promise<Value>,
): Promise<Value> {
  const limit = startTimeLimit(clock, ms, caller);
  limit.again();
  try {
    return await run(limit);
  } catch (error) {
    throw limit.explain(error);
  } finally {
    limit.end();
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new RemoteFailure('malformed', `its answer is no JSON: ${messageOf(error)}`);
  }
}

function tooLarge(host: string, adapter: string, maxBytes: number): PlatformError {
  return new PlatformError(
    'PAYLOAD_TOO_LARGE',
    `${host} answered with more than ${maxBytes} bytes (adapters.${adapter}.maxResponseBytes).`,
    { details: { adapter, maxBytes } },
  );
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
