import { type Clock, systemClock } from '../../kit/clock.ts';
import { codeOf, messageOf, PlatformError } from '../../kit/errors.ts';
import { createFairShares, createTenancy, type FairShares, type Tenancy } from '../../kit/fair-shares.ts';
import { createTurns, type Turns } from '../../kit/turns.ts';
import type { PlatformCallContext, PlatformService } from '../execution.ts';
import type { FetchReply, FetchRequest } from '../runner/fetch.ts';
import { literalAddress } from './addresses.ts';
import { invalid, optionsArgument } from './arguments.ts';
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
/** Calls of one plugin that hold a response in our memory at a time; further ones wait. Of several tenants one gets eight at most. */
const MAX_AT_ONCE = 10;

/** Headers that belong to the connection, which is ours. */
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
/** Headers that must not follow a redirect to another origin. */
const CREDENTIAL_HEADERS = new Set(['authorization', 'cookie']);
/** Of the response: what described bytes that have been decoded since. */
const ENCODING_HEADERS = new Set(['content-encoding', 'content-length', 'transfer-encoding']);

/** Answers a request that a manifest allows instead of the network; undefined: the network answers. */
export type StubFetch = (request: Request) => Promise<Response | undefined> | Response | undefined;

export interface FetchServiceOptions {
  resolve?: Resolve;
  /** For tests of plugins. */
  stub?: StubFetch;
  clock?: Clock;
  timeoutMs?: number;
  maxResponseBytes?: number;
  /** Names that the operator lets lead to private addresses. */
  privateHosts?: readonly string[];
}

export interface FetchService extends PlatformService {
  request: PlatformService[string];
}

/**
 * `ctx.fetch`: the request is made here, where the manifest's list is enforced on every hop and every
 * address. Throws PERMISSION_DENIED, UPSTREAM_UNAVAILABLE, UPSTREAM_TIMEOUT, PAYLOAD_TOO_LARGE, VALIDATION_ERROR.
 * @spec docs/plugins.md "ctx.fetch"
 */
export function createFetchService(options: FetchServiceOptions = {}): FetchService {
  const { clock = systemClock, timeoutMs = TIMEOUT_MS, maxResponseBytes = MAX_RESPONSE_BYTES } = options;
  let dispatchers: Promise<Dispatchers> | undefined;
  const places = createPlaces();

  async function hop(
    request: FetchRequest,
    context: PlatformCallContext,
    signal: AbortSignal,
  ): Promise<Response> {
    const url = new URL(request.url);
    const { network } = context.request.permissions;
    const { mayBePrivate } = requireHost(url, network, options.privateHosts);
    const literal = literalAddress(url.hostname);
    // Addresses need no look-up, so the connection's own check never sees them.
    if (literal !== null) (mayBePrivate ? refuseLocalServices : refusePrivateAddress)(url.hostname, literal);
    const body = request.body === null ? null : Buffer.from(request.body, 'base64');
    const answered = await options.stub?.(
      new Request(url, { method: request.method, headers: request.headers, body }),
    );
    if (answered) return answered;
    dispatchers ??= createDispatchers(options.resolve);
    const { anywhere, publicOnly } = await dispatchers;
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

  async function follow(
    request: FetchRequest,
    context: PlatformCallContext,
    signal: AbortSignal,
  ): Promise<FetchReply> {
    let current = request;
    for (let redirects = 0; ; redirects++) {
      const response = await hop(current, context, signal);
      const next = request.redirect === 'manual' ? null : redirectOf(current, response);
      if (!next) return readReply(current.url, response, redirects > 0, maxResponseBytes);
      await response.body?.cancel();
      if (request.redirect === 'error')
        throw upstream(`${current.url} answered with a redirect, which the call refuses`);
      if (redirects >= MAX_REDIRECTS)
        throw upstream(`${request.url} redirected more than ${MAX_REDIRECTS} times`);
      current = next;
    }
  }

  return {
    async request(context, [sent]) {
      const request = readRequest(sent);
      const leave = await places.enter(context);
      const timeout = new AbortController();
      const stopTimer = clock.after(timeoutMs, () => timeout.abort(timedOut(request, timeoutMs)));
      const signal = AbortSignal.any([context.signal, timeout.signal]);
      try {
        return await follow(request, context, signal);
      } catch (error) {
        throw toCallError(error, request, signal);
      } finally {
        leave();
        stopTimer();
      }
    },
  };
}

function readRequest(sent: unknown): FetchRequest {
  const { url, method, headers, body, redirect } = optionsArgument(sent);
  if (typeof url !== 'string' || !URL.canParse(url)) throw invalid('the URL must be absolute');
  const { protocol, username, password } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:')
    throw invalid(`ctx.fetch speaks http and https, not ${protocol}`);
  if (username !== '' || password !== '')
    throw invalid('credentials belong into the Authorization header, not the URL');
  if (typeof method !== 'string' || !/^[A-Z]{1,16}$/i.test(method) || /^(?:connect|trace)$/i.test(method)) {
    throw invalid('the method is not allowed');
  }
  if (!Array.isArray(headers) || headers.length > 200 || !headers.every(isPair)) {
    throw invalid('headers must be at most 200 pairs of texts');
  }
  if (body !== null && typeof body !== 'string') throw invalid('the body must be base64 or null');
  return {
    url,
    method: method.toUpperCase(),
    headers,
    body,
    redirect: redirect === 'manual' || redirect === 'error' ? redirect : 'follow',
  };
}

function isPair(value: unknown): value is [string, string] {
  return Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === 'string');
}

/** The next request of a redirect, as browsers make it; null when the answer is none. */
function redirectOf(request: FetchRequest, response: Response): FetchRequest | null {
  const location = response.headers.get('location');
  if (![301, 302, 303, 307, 308].includes(response.status) || location === null) return null;
  if (!URL.canParse(location, request.url))
    throw upstream(`${request.url} redirected to "${location}", which is no URL`);
  const url = new URL(location, request.url);
  const { href } = readTarget(url);
  const isSameOrigin = url.origin === new URL(request.url).origin;
  const becomesGet =
    (response.status === 303 && request.method !== 'HEAD') ||
    ((response.status === 301 || response.status === 302) && request.method === 'POST');
  const headers = request.headers.filter(([name]) => {
    const lower = name.toLowerCase();
    if (!isSameOrigin && CREDENTIAL_HEADERS.has(lower)) return false;
    return !(becomesGet && lower.startsWith('content-'));
  });
  return { ...request, url: href, headers, ...(becomesGet ? { method: 'GET', body: null } : {}) };
}

function readTarget(url: URL): URL {
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw upstream(`a redirect led to ${url.protocol}`);
  if (url.username !== '' || url.password !== '') throw upstream('a redirect carried credentials in its URL');
  return url;
}

async function readReply(
  url: string,
  response: Response,
  redirected: boolean,
  maxBytes: number,
): Promise<FetchReply> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Counted after decoding: a small bomb is as large as what it unpacks to.
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > maxBytes) {
      throw new PlatformError(
        'PAYLOAD_TOO_LARGE',
        `${url} answered with more than ${maxBytes} bytes; ask for less.`,
        {
          details: { maxBytes },
        },
      );
    }
    chunks.push(chunk);
  }
  return {
    url,
    status: response.status,
    statusText: response.statusText,
    headers: [...response.headers].filter(([name]) => !ENCODING_HEADERS.has(name)),
    body: Buffer.concat(chunks).toString('base64'),
    redirected,
  };
}

function upstream(what: string): PlatformError {
  return new PlatformError('UPSTREAM_UNAVAILABLE', `The call failed: ${what}.`);
}

function timedOut({ url }: FetchRequest, timeoutMs: number): PlatformError {
  return new PlatformError('UPSTREAM_TIMEOUT', `${new URL(url).host} did not answer within ${timeoutMs} ms.`);
}

/** undici wraps what a connection throws in "fetch failed"; the reason is what the plugin's author needs. */
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

interface Places {
  /** Returns what gives the place back. Rejects with the signal's reason when that fires first. */
  enter(context: PlatformCallContext): Promise<() => void>;
}

interface PluginPlaces {
  tenancy: Tenancy;
  shares: FairShares;
  waiting: Turns<() => void>;
}

/** At most ten calls a plugin at once, shared by tenants; the others wait their turn, as many as its processes may have under way. */
function createPlaces(): Places {
  const busy = new Map<string, PluginPlaces>();

  function open(pluginId: string): PluginPlaces {
    const tenancy = createTenancy();
    const shares = createFairShares(MAX_AT_ONCE, tenancy);
    const opened = { tenancy, shares, waiting: createTurns<() => void>() };
    busy.set(pluginId, opened);
    return opened;
  }
  return {
    async enter({ request: { plugin, tenantId }, signal }) {
      const { tenancy, shares, waiting } = busy.get(plugin.id) ?? open(plugin.id);
      tenancy.note(tenantId);
      if (!shares.take(tenantId)) await turnIn(waiting, tenantId, signal);
      const next = () => waiting.next((other) => shares.take(other));
      return () => {
        shares.release(tenantId);
        for (let take = next(); take; take = next()) take();
        if (shares.free === shares.count) busy.delete(plugin.id);
      };
    },
  };
}

function turnIn(waiting: Turns<() => void>, tenantId: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const take = (): void => {
      signal.removeEventListener('abort', leave);
      resolve();
    };
    const leave = (): void => {
      waiting.remove(tenantId, take);
      reject(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    waiting.add(tenantId, take);
  });
}
