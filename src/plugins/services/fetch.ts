import { codeOf, messageOf, PlatformError } from '../../kit/errors/errors.ts';
import { type Clock, systemClock } from '../../kit/time/clock.ts';
import type { PlatformService } from '../execution.ts';
import type { FetchReply, FetchRequest } from '../runner/fetch.ts';
import { literalAddress } from './addresses.ts';
import { readReply, readRequest, redirectOf, upstream } from './fetch-messages.ts';
import { createFetchSlots } from './fetch-slots.ts';
import {
  createDispatchers,
  type Dispatchers,
  refuseLocalServices,
  refusePrivateAddress,
} from './guarded-dispatcher.ts';
import { requireHost } from './network-permission.ts';
import type { Resolve } from './resolve.ts';

const MAX_RESPONSE_BYTES = 8 * 1024 * 1024;
const MAX_REDIRECTS = 10;
const TIMEOUT_MS = 30_000;
/** Connection headers that are removed from a plugin's request. The platform sets these headers itself. */
const CONNECTION_HEADERS = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
/**
 * Returns the response to an allowed request without using the network. If the function returns undefined, the request
 * is sent over the network.
 */
export type StubFetch = (request: Request) => Promise<Response | undefined> | Response | undefined;

export interface FetchServiceOptions {
  resolve?: Resolve;
  /** Replacement for the network, used in tests of plugins. */
  stub?: StubFetch;
  clock?: Clock;
  timeoutMs?: number;
  maxResponseBytes?: number;
  /** Host names for which the operator allows private addresses. */
  privateHosts?: readonly string[];
}

/** Fields of a platform call's context that `ctx.fetch` needs. */
export interface FetchContext {
  request: { plugin: { id: string }; tenantId: string; permissions: { network: readonly string[] } };
  signal: AbortSignal;
}

export interface FetchService extends PlatformService {
  request: (context: FetchContext, args: unknown[]) => Promise<FetchReply>;
}

/**
 * Creates `ctx.fetch`, which checks every redirect and address against the manifest. Requests reject with
 * PERMISSION_DENIED, UPSTREAM_UNAVAILABLE, UPSTREAM_TIMEOUT, PAYLOAD_TOO_LARGE or VALIDATION_ERROR. @spec
 * docs/plugins.md "The context"
 */
export function createFetchService(options: FetchServiceOptions = {}): FetchService {
  const calls = new FetchCalls(options);
  // The service is a plain object, because the router of platform calls finds only own properties.
  return { request: (context, [sent]) => calls.request(context, sent) };
}

class FetchCalls {
  readonly #options: FetchServiceOptions;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #maxResponseBytes: number;
  readonly #slots = createFetchSlots();
  #dispatchers: Promise<Dispatchers> | undefined;

  constructor(options: FetchServiceOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#maxResponseBytes = options.maxResponseBytes ?? MAX_RESPONSE_BYTES;
  }

  async request(context: FetchContext, sent: unknown): Promise<FetchReply> {
    const request = readRequest(sent);
    const leave = await this.#slots.enter(context);
    const timeout = new AbortController();
    const stopTimer = this.#clock.after(this.#timeoutMs, () =>
      timeout.abort(timedOut(request, this.#timeoutMs)),
    );
    const signal = AbortSignal.any([context.signal, timeout.signal]);
    try {
      return await this.#follow(request, context, signal);
    } catch (error) {
      throw toCallError(error, request, signal);
    } finally {
      leave();
      stopTimer();
    }
  }

  async #follow(request: FetchRequest, context: FetchContext, signal: AbortSignal): Promise<FetchReply> {
    let current = request;
    for (let redirects = 0; ; redirects++) {
      const response = await this.#hop(current, context, signal);
      const next = request.redirect === 'manual' ? null : redirectOf(current, response);
      if (!next) return readReply(current, response, redirects > 0, this.#maxResponseBytes);
      await response.body?.cancel();
      if (request.redirect === 'error')
        throw upstream(`${current.url} answered with a redirect, which the call does not allow`);
      if (redirects >= MAX_REDIRECTS)
        throw upstream(`${request.url} redirected more than ${MAX_REDIRECTS} times`);
      current = next;
    }
  }

  async #hop(request: FetchRequest, context: FetchContext, signal: AbortSignal): Promise<Response> {
    const url = new URL(request.url);
    const { network } = context.request.permissions;
    const { mayBePrivate } = requireHost(url, network, this.#options.privateHosts);
    const literal = literalAddress(url.hostname);
    // The dispatcher checks addresses during the DNS lookup. A literal IP address needs no lookup and is checked here.
    if (literal !== null) (mayBePrivate ? refuseLocalServices : refusePrivateAddress)(url.hostname, literal);
    const body = request.body === null ? null : Buffer.from(request.body, 'base64');
    const answered = await this.#options.stub?.(
      new Request(url, { method: request.method, headers: request.headers, body }),
    );
    if (answered) return answered;
    this.#dispatchers ??= createDispatchers(this.#options.resolve);
    const { anywhere, publicOnly } = await this.#dispatchers;
    const { fetch } = await import('undici');
    return (await fetch(url, {
      method: request.method,
      headers: request.headers.filter(([name]) => !CONNECTION_HEADERS.has(name.toLowerCase())),
      body,
      redirect: 'manual',
      dispatcher: mayBePrivate ? anywhere : publicOnly,
      signal,
    })) as unknown as Response;
  }
}

function timedOut({ url }: FetchRequest, timeoutMs: number): PlatformError {
  return new PlatformError('UPSTREAM_TIMEOUT', `${new URL(url).host} did not answer within ${timeoutMs} ms.`);
}

/**
 * Converts an error of undici to a PlatformError. Uses the message of the cause, because undici's own message is only
 * "fetch failed".
 */
function toCallError(thrown: unknown, { url }: FetchRequest, signal: AbortSignal): PlatformError {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (error instanceof PlatformError) return error;
  }
  if (signal.aborted && signal.reason instanceof PlatformError) return signal.reason;
  const cause = thrown instanceof Error && thrown.cause ? thrown.cause : thrown;
  const code = codeOf(cause);
  const { host } = new URL(url);
  return new PlatformError(
    code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'UND_ERR_HEADERS_TIMEOUT'
      ? 'UPSTREAM_TIMEOUT'
      : 'UPSTREAM_UNAVAILABLE',
    `The call to ${host} failed: ${messageOf(cause)}${code ? ` (${code})` : ''}.`,
    { details: { host, ...(code ? { code } : {}) }, cause: thrown },
  );
}
