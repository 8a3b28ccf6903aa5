import { isRecord } from '../../../kit/data/is-record.ts';
import { findCostProblem } from '../../../kit/data/json-cost.ts';
import { systemClock } from '../../../kit/time/clock.ts';

/** A server cannot be used: it does not start, has ended, or does not follow the protocol. */
export class ServerFailure extends Error {}

/** The server refuses a request. The message comes from the server. */
export class ServerRefusal extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Messages of a server while one request waits, apart from the response. A server that sends more is stopped, because
 * each message takes time of this process.
 */
const MAX_MESSAGES = 10_000;
const MAX_ERROR_CHARS = 2000;
const MAX_DEPTH = 256;
const METHOD_NOT_FOUND = -32601;

interface Waiting {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/** Requests of JSON-RPC 2.0 to an MCP server. All messages of the server are untrusted. */
export class Rpc {
  readonly #send: (message: object) => Promise<void>;
  readonly #onFault: (reason: string) => void;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  #messages = 0;

  /**
   * `send` resolves once the message was written or, over HTTP, accepted. It rejects with ServerFailure otherwise.
   * `onFault` is called when the server does not follow the protocol.
   */
  constructor(send: (message: object) => Promise<void>, onFault: (reason: string) => void) {
    this.#send = send;
    this.#onFault = onFault;
  }

  /** Resolves like `send`. A server over stdin may then not have read the notification yet. */
  notify(method: string, params: object = {}): Promise<void> {
    return this.#send({ jsonrpc: '2.0', method, params });
  }

  /** Resolves with the result. Rejects with ServerRefusal, ServerFailure or the reason of the signal. */
  async request(method: string, params: object, signal: AbortSignal): Promise<unknown> {
    signal.throwIfAborted();
    const id = ++this.#lastId;
    this.#messages = 0;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const cancel = (): void => {
      const reason = 'The caller has cancelled the call.';
      this.notify('notifications/cancelled', { requestId: id, reason }).catch(() => {});
      reject(signal.reason as Error);
    };
    this.#waiting.set(id, { resolve, reject });
    signal.addEventListener('abort', cancel, { once: true });
    try {
      this.#send({ jsonrpc: '2.0', id, method, params }).catch(reject);
      return await promise;
    } finally {
      signal.removeEventListener('abort', cancel);
      this.#waiting.delete(id);
    }
  }

  /** Takes a message of the server, which JSON.parse has read. */
  receive(message: unknown): void {
    if (Array.isArray(message)) {
      for (const one of message.slice(0, MAX_MESSAGES)) if (!Array.isArray(one)) this.receive(one);
      return;
    }
    if (!isRecord(message)) this.#onFault('it sent a message that is not an object');
    else if (!this.#settle(message)) this.#takeOther(message);
  }

  /** Settles the request that the message answers. Returns false for any other message. */
  #settle({ id, method, result, error }: Record<string, unknown>): boolean {
    const waiting = typeof method !== 'string' && typeof id === 'number' ? this.#waiting.get(id) : undefined;
    if (!waiting) return false;
    if (error === undefined || error === null) waiting.resolve(result);
    else waiting.reject(refusalOf(error));
    return true;
  }

  #takeOther({ id, method }: Record<string, unknown>): void {
    if (++this.#messages > MAX_MESSAGES) this.#onFault(`it sent more than ${MAX_MESSAGES} messages`);
    else if (typeof method === 'string' && (typeof id === 'number' || typeof id === 'string'))
      this.#answer(id, method);
  }

  /** Rejects a request whose response has ended without an answer. */
  expire(id: number): void {
    this.#waiting.get(id)?.reject(new ServerFailure('it did not answer the request'));
  }

  /** Rejects all requests. */
  fail(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  /** Refuses requests of the server, such as sampling: the platform declares none of these capabilities. */
  #answer(id: number | string, method: string): void {
    const error = { code: METHOD_NOT_FOUND, message: 'This client answers no requests.' };
    const answer = method === 'ping' ? { result: {} } : { error };
    this.#send({ jsonrpc: '2.0', id, ...answer }).catch(() => {});
  }
}

function refusalOf(error: unknown): ServerRefusal {
  const { code, message } = isRecord(error) ? error : {};
  return new ServerRefusal(
    typeof code === 'number' ? code : 0,
    typeof message === 'string' ? message.slice(0, MAX_ERROR_CHARS) : 'The server gave no reason.',
  );
}

/** Parses a message of a server. Returns undefined if it is not JSON, or JSON that would take too long to process. */
export function parseMessage(text: string): unknown {
  try {
    return findCostProblem(text, MAX_DEPTH) ? undefined : (JSON.parse(text) as unknown);
  } catch {
    return undefined;
  }
}

/** Returns a signal that also aborts after `ms`, with a ServerFailure as reason. */
export function withLimit(signal: AbortSignal, ms: number, what: string) {
  const limit = new AbortController();
  const stop = systemClock.after(ms, () =>
    limit.abort(new ServerFailure(`it did not ${what} within ${ms / 1000} s`)),
  );
  return { signal: AbortSignal.any([signal, limit.signal]), stop };
}
