import { PlatformError } from '../../kit/errors/errors.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { RemoteFailure } from './remote-error.ts';

export interface AttemptLimits {
  /** Name of the adapter, for error messages. */
  adapter: 'llm' | 'embeddings';
  timeoutMs: number;
  /** Whether the response is streamed. For a streamed response, each chunk restarts the timeout. */
  isStream: boolean;
  maxResponseBytes: number;
}

const MAX_ERROR_BODY_BYTES = 16 * 1024;
/**
 * Request headers that are sent. The OpenAI library's other headers are removed, because some describe this machine.
 */
const SENT_HEADERS = ['authorization', 'content-type'];

/** One HTTP request to a model endpoint, limited in time and size. */
export class Attempt {
  readonly #limits: AttemptLimits;
  readonly #clock: Clock;
  readonly #caller: AbortSignal;
  readonly #over = new AbortController();
  #stopTimer = (): void => {};
  #failure: unknown;

  constructor(limits: AttemptLimits, clock: Clock, caller: AbortSignal) {
    this.#limits = limits;
    this.#clock = clock;
    this.#caller = caller;
    this.#restartTimer();
  }

  /** The original error of a failed request. The OpenAI library replaces this error with its own. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Replacement for the global `fetch`, passed to the OpenAI library. */
  readonly fetch = async (url: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    try {
      const response = await fetch(url, {
        ...init,
        headers: headersOf(init),
        redirect: 'error',
        signal: AbortSignal.any([this.#caller, this.#over.signal, ...(init.signal ? [init.signal] : [])]),
      });
      return this.#limited(response, init);
    } catch (error) {
      throw this.#failed(error, init);
    }
  };

  /** Stops the timer. Closes the connection if the response was not read to its end. */
  end(): void {
    this.#stopTimer();
    this.#over.abort();
  }

  #restartTimer(): void {
    this.#stopTimer();
    const { timeoutMs } = this.#limits;
    this.#stopTimer = this.#clock.after(timeoutMs, () =>
      this.#over.abort(new RemoteFailure('timeout', `no data arrived for ${timeoutMs} ms`)),
    );
  }

  #limited(response: Response, init: RequestInit): Response {
    const { status, body } = response;
    if (!body) return response;
    const headers = new Headers(response.headers);
    // The OpenAI library parses only responses with a JSON content type. The content type is set here, because some
    // servers send JSON with another content type.
    if (response.ok && !this.#limits.isStream) headers.set('content-type', 'application/json');
    const chunks = response.ok ? this.#limitedBody(body, response.url, init) : errorBody(body);
    return new Response(ReadableStream.from(chunks), { status, headers });
  }

  async *#limitedBody(
    body: AsyncIterable<Uint8Array>,
    url: string,
    init: RequestInit,
  ): AsyncGenerator<Uint8Array> {
    const { adapter, isStream, maxResponseBytes } = this.#limits;
    let size = 0;
    try {
      for await (const chunk of body) {
        if (isStream) this.#restartTimer();
        size += chunk.byteLength;
        if (size > maxResponseBytes) throw tooLarge(new URL(url).host, adapter, maxResponseBytes);
        yield chunk;
      }
    } catch (error) {
      throw this.#failed(error, init);
    }
  }

  /**
   * Records the error unless the OpenAI library aborted the request, because the library itself reports the cause of
   * its aborts.
   */
  #failed(error: unknown, { signal }: RequestInit): unknown {
    if (!signal?.aborted) this.#failure = error;
    return error;
  }
}

function headersOf({ headers }: RequestInit): Headers {
  const original = new Headers(headers);
  const sent = new Headers({ accept: 'application/json, text/event-stream' });
  for (const name of SENT_HEADERS) {
    const value = original.get(name);
    if (value !== null) sent.set(name, value);
  }
  return sent;
}

/** Yields the body of an error response, or nothing if the body is too large or incomplete. */
async function* errorBody(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of body) {
      size += chunk.byteLength;
      if (size > MAX_ERROR_BODY_BYTES) return;
      chunks.push(chunk);
    }
  } catch {
    return;
  }
  yield* chunks;
}

function tooLarge(host: string, adapter: string, maxBytes: number): PlatformError {
  return new PlatformError(
    'PAYLOAD_TOO_LARGE',
    `${host} answered with more than ${maxBytes} bytes, the limit of adapters.${adapter}.maxResponseBytes.`,
    { details: { adapter, maxBytes } },
  );
}
