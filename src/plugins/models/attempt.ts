import { PlatformError } from '../../kit/errors/errors.ts';
import type { Clock } from '../../kit/time/clock.ts';
import { RemoteFailure } from './remote-error.ts';

export interface AttemptLimits {
  /** Adapter name for error messages. */
  adapter: 'llm' | 'embeddings';
  timeoutMs: number;
  /** Restarts the timeout with each chunk of the response. */
  isStream: boolean;
  maxResponseBytes: number;
}

const MAX_ERROR_BODY_BYTES = 16 * 1024;
/** Headers that are sent. The library's other headers describe this machine, or come from environment variables. */
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

  /** Cause of the failure in the transport, before the library wrapped it. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Replaces the global `fetch` for this attempt. */
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

  /** Stops the timer, and closes the connection of an abandoned response. */
  end(): void {
    this.#stopTimer();
    this.#over.abort();
  }

  #restartTimer(): void {
    this.#stopTimer();
    const { timeoutMs } = this.#limits;
    this.#stopTimer = this.#clock.after(timeoutMs, () =>
      this.#over.abort(new RemoteFailure('timeout', `nothing came for ${timeoutMs} ms`)),
    );
  }

  #limited(response: Response, init: RequestInit): Response {
    const { status, body } = response;
    if (!body) return response;
    const headers = new Headers(response.headers);
    // Some servers label JSON as text, and the library parses by label.
    if (response.ok && !this.#limits.isStream) headers.set('content-type', 'application/json');
    const chunks = response.ok ? this.#limitedBody(body, response.url, init) : firstBytes(body);
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

  /** Records an error, except when the library aborts its own request after a failure that it reports itself. */
  #failed(error: unknown, { signal }: RequestInit): unknown {
    if (!signal?.aborted) this.#failure = error;
    return error;
  }
}

function headersOf({ headers }: RequestInit): Headers {
  const given = new Headers(headers);
  const sent = new Headers({ accept: 'application/json, text/event-stream' });
  for (const name of SENT_HEADERS) {
    const value = given.get(name);
    if (value !== null) sent.set(name, value);
  }
  return sent;
}

/** Yields an error body; empty if it is too large or breaks off, since the status alone suffices. */
async function* firstBytes(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
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
    `${host} answered with more than ${maxBytes} bytes (adapters.${adapter}.maxResponseBytes).`,
    { details: { adapter, maxBytes } },
  );
}
