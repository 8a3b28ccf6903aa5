import type { CallInput, Endpoint, PlatformCode, ReplyOf } from '../contracts/index.ts';
import { isPlatformCode } from '../contracts/index.ts';
import { codeOf, PlatformError } from '../kit/errors/errors.ts';

const TIMEOUTS = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']);

export interface ClientOptions {
  /** Base URL of the peer. A function is needed if a restart of the peer can change the URL. */
  url: string | (() => string);
  /** Headers of every call, such as tokens or the service key. */
  headers?: () => Record<string, string> | Promise<Record<string, string>>;
  timeoutMs?: number;
  /** Name of the peer in error messages, such as `gateway`. */
  peer: string;
  /** Replacement for the global `fetch`. */
  send?: Send;
}

/** Subset of `fetch` that the client uses. On abort, rejects with the reason of the signal. */
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
  /** Timeout of this call in ms, which overrides the client's timeout. */
  timeoutMs?: number;
}

/** Calls endpoints. Rejects with the error that the peer sent, or with UPSTREAM_UNAVAILABLE or UPSTREAM_TIMEOUT. */
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
      return parseReply(text, peer) as ReplyOf<typeof endpoint>;
    },
  };
}

/** Requests a path and returns the response before its body is read. Throws the same errors as `Client.call`. */
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
    // URL normalization removes empty and dot segments, even in escaped form. The request would then reach another
    // path.
    if (value === '' || value === '.' || value === '..') {
      throw new PlatformError('VALIDATION_ERROR', `${name} cannot be ${JSON.stringify(value)}.`);
    }
    if (!value.isWellFormed())
      throw new PlatformError('VALIDATION_ERROR', `${name} contains an unpaired surrogate.`);
    return encodeURIComponent(value);
  });
}

function queryString(query: object): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
  // A list is a repeated parameter.
  const values = pairs.flatMap(([name, value]) => [value].flat().map((each) => [name, String(each)]));
  return values.length === 0 ? '' : `?${new URLSearchParams(values)}`;
}

/**
 * Returns the TLS certificate error in the cause chain of a `fetch` error. Returns undefined if the cause chain has no
 * such error.
 */
function trustFailure(error: unknown): { code: string; message: string } | undefined {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const code = codeOf(at) ?? '';
    if (/CERT|^UNABLE_TO_(?:VERIFY|GET_ISSUER)/.test(code)) return { code, message: at.message };
  }
  return undefined;
}

/** Returns the PlatformError for a request that failed without a response. */
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
          hint: 'Set NODE_EXTRA_CA_CERTS=<ca.pem> to trust your own CA, and check the host name in the URL.',
        },
      },
    );
  return new PlatformError(
    'UPSTREAM_UNAVAILABLE',
    `The ${peer} at ${base} is unreachable. Check with \`svc status\` whether it is running.`,
    { cause: error },
  );
}

/**
 * Converts an error response to a PlatformError. Keeps the code, message and details from the response body if the code
 * is a platform code.
 */
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
    // The body does not have the platform's format, so the error contains only the status.
  }
  const retryAfter = response.headers.get('retry-after');
  return new PlatformError(code, message, {
    details,
    ...(retryAfter ? { headers: { 'retry-after': retryAfter } } : {}),
  });
}

/** Parses the body of a successful response. Throws UPSTREAM_UNAVAILABLE if the body is not JSON. */
export function parseReply(text: string, peer: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch (error) {
    throw new PlatformError('UPSTREAM_UNAVAILABLE', `The ${peer} sent a response that is not JSON.`, {
      cause: error,
    });
  }
}
