import type { CallInput, Endpoint, PlatformCode, ReplyOf } from '../contracts/index.ts';
import { isPlatformCode } from '../contracts/index.ts';
import { codeOf, PlatformError } from '../kit/errors.ts';

/** What undici calls them. */
const TIMEOUTS = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']);

export interface ClientOptions {
  /** Base URL, or a function for one that may move (a restarted daemon). Throws what it throws. */
  url: string | (() => string);
  /** Headers of every call: tokens, service key. */
  headers?: () => Record<string, string> | Promise<Record<string, string>>;
  timeoutMs?: number;
  /** How failures name the other side: `gateway`. */
  peer: string;
  /** Instead of Node's fetch. */
  send?: Send;
}

/** The part of `fetch` that a call needs; rejects with the signal's reason when that fires. */
export type Send = (url: string, request: SentRequest) => Promise<SentReply>;

export interface SentRequest {
  method: string;
  headers: Record<string, string>;
  body?: string;
  signal: AbortSignal;
}

export type SentReply = Pick<Response, 'ok' | 'status' | 'text'> & { headers: Pick<Headers, 'get'> };

export interface CallOptions {
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Instead of the client's own. */
  timeoutMs?: number;
}

/** Calls endpoints by their contract. Failures are PlatformErrors: the peer's own, UPSTREAM_UNAVAILABLE or UPSTREAM_TIMEOUT. */
export interface Client {
  call<E extends Endpoint>(endpoint: E, input?: CallInput<E>, options?: CallOptions): Promise<ReplyOf<E>>;
}

const sendByFetch: Send = (url, request) => fetch(url, { ...request, redirect: 'error' });

export function createClient(options: ClientOptions): Client {
  const { url, headers, timeoutMs = 30_000, peer, send = sendByFetch } = options;
  return {
    async call(endpoint, input, callOptions = {}) {
      const base = typeof url === 'string' ? url : url();
      const parts = (input ?? {}) as { params?: object; query?: object; body?: unknown };
      const target =
        base.replace(/\/$/, '') +
        fillPath(endpoint.path, parts.params ?? {}) +
        queryString(parts.query ?? {});
      const signals = [
        AbortSignal.timeout(callOptions.timeoutMs ?? timeoutMs),
        ...(callOptions.signal ? [callOptions.signal] : []),
      ];
      let response: SentReply;
      let text: string;
      try {
        response = await send(target, {
          method: endpoint.method,
          headers: {
            accept: 'application/json',
            ...(parts.body === undefined ? {} : { 'content-type': 'application/json' }),
            ...(await headers?.()),
            ...callOptions.headers,
          },
          ...(parts.body === undefined ? {} : { body: JSON.stringify(parts.body) }),
          signal: AbortSignal.any(signals),
        });
        text = await response.text();
      } catch (error) {
        throw connectionError(error, peer, base);
      }
      if (!response.ok) throw peerError(response, text, peer);
      return parseReply(text, peer) as never;
    },
  };
}

/** Calls a path and hands back the response before its body. Throws as `Client.call` does. */
export async function openStream(
  base: string,
  path: string,
  { headers, signal }: { headers: Record<string, string>; signal: AbortSignal },
  peer = 'gateway',
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(base.replace(/\/$/, '') + path, { headers, signal, redirect: 'error' });
  } catch (error) {
    throw connectionError(error, peer, base);
  }
  if (!response.ok) throw peerError(response, await response.text(), peer);
  return response;
}

function fillPath(path: string, params: object): string {
  return path.replace(/:([A-Za-z_]\w*)/g, (_, name: string) => {
    const value = String((params as Record<string, unknown>)[name]);
    // A URL cannot hold these as a segment, however they are escaped: the call would go somewhere else.
    if (value === '' || value === '.' || value === '..') {
      throw new PlatformError('VALIDATION_ERROR', `${name} cannot be ${JSON.stringify(value)}.`);
    }
    if (!value.isWellFormed())
      throw new PlatformError('VALIDATION_ERROR', `${name} holds half of a surrogate pair.`);
    return encodeURIComponent(value);
  });
}

function queryString(query: object): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
  return pairs.length === 0
    ? ''
    : `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}`;
}

/** What Node says of a certificate that it does not accept; fetch hides it in the cause. */
function trustFailure(error: unknown): { code: string; message: string } | undefined {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const code = codeOf(at) ?? '';
    if (/CERT|^UNABLE_TO_(?:VERIFY|GET_ISSUER)/.test(code)) return { code, message: at.message };
  }
  return undefined;
}

/** A call that got no answer. */
export function connectionError(error: unknown, peer: string, base: string): PlatformError {
  if (error instanceof PlatformError) return error;
  if ((error instanceof DOMException && error.name === 'TimeoutError') || TIMEOUTS.has(codeOf(error) ?? '')) {
    return new PlatformError('UPSTREAM_TIMEOUT', `The ${peer} at ${base} did not answer in time.`, {
      cause: error,
    });
  }
  const untrusted = trustFailure(error);
  if (untrusted)
    return new PlatformError(
      'UPSTREAM_UNAVAILABLE',
      `The certificate of the ${peer} at ${base} is not trusted: ${untrusted.message}.`,
      {
        cause: error,
        details: {
          reason: untrusted.code,
          hint: 'NODE_EXTRA_CA_CERTS=<ca.pem> trusts an authority of your own; check the name in the address too.',
        },
      },
    );
  return new PlatformError(
    'UPSTREAM_UNAVAILABLE',
    `The ${peer} at ${base} cannot be reached; \`svc status\` shows whether it runs.`,
    { cause: error },
  );
}

/** The peer's own error as it is, when it has our shape and a code we know. */
export function peerError(
  response: Pick<SentReply, 'status' | 'headers'>,
  text: string,
  peer: string,
): PlatformError {
  let code: PlatformCode = 'UPSTREAM_UNAVAILABLE';
  let message = `The ${peer} answered ${response.status}.`;
  let details: Record<string, unknown> = { status: response.status };
  try {
    const { error } = JSON.parse(text) as {
      error: { code: string; message: string; details?: Record<string, unknown> };
    };
    if (isPlatformCode(error.code)) ({ code, message, details = {} } = { ...error, code: error.code });
    else details = { ...details, code: error.code };
  } catch {
    // Not our shape: the status is all there is to tell.
  }
  const retryAfter = response.headers.get('retry-after');
  return new PlatformError(code, message, {
    details,
    ...(retryAfter ? { headers: { 'retry-after': retryAfter } } : {}),
  });
}

/** The answer of a success. Throws UPSTREAM_UNAVAILABLE when it is no JSON. */
export function parseReply(text: string, peer: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch (error) {
    throw new PlatformError('UPSTREAM_UNAVAILABLE', `The ${peer} answered something that is not JSON.`, {
      cause: error,
    });
  }
}
