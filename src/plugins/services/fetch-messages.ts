import { PlatformError } from '../../kit/errors/errors.ts';
import type { FetchReply, FetchRequest } from '../runner/fetch.ts';
import { invalid, optionsArgument } from './arguments.ts';

/** Request headers that are removed on a redirect to another origin. */
const CREDENTIAL_HEADERS = new Set(['authorization', 'cookie']);
/** Response headers that are removed because they describe the encoded body, but the body is already decoded. */
const ENCODING_HEADERS = new Set(['content-encoding', 'content-length', 'transfer-encoding']);

/** Validates a request from plugin code. Throws VALIDATION_ERROR if the request is invalid. */
export function readRequest(sent: unknown): FetchRequest {
  const { url, method, headers, body, redirect, discardBody } = optionsArgument(sent);
  if (typeof url !== 'string' || !URL.canParse(url)) throw invalid('the URL must be absolute');
  const { protocol, username, password } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:')
    throw invalid(`ctx.fetch supports http and https, not ${protocol}`);
  if (username !== '' || password !== '')
    throw invalid('pass credentials in the Authorization header, not in the URL');
  if (typeof method !== 'string' || !/^[A-Z]{1,16}$/i.test(method) || /^(?:connect|trace)$/i.test(method)) {
    throw invalid('the method is not allowed');
  }
  if (!Array.isArray(headers) || headers.length > 200 || !headers.every(isPair)) {
    throw invalid('headers must be at most 200 pairs of strings');
  }
  if (body !== null && typeof body !== 'string') throw invalid('the body must be base64 or null');
  return {
    url,
    method: method.toUpperCase(),
    headers,
    body,
    redirect: redirect === 'manual' || redirect === 'error' ? redirect : 'follow',
    discardBody: discardBody === true,
  };
}

function isPair(value: unknown): value is [string, string] {
  return Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === 'string');
}

/**
 * Returns the next request after a redirect, by the rules of browsers. Returns null if the response is not a redirect.
 */
export function redirectOf(request: FetchRequest, response: Response): FetchRequest | null {
  const location = response.headers.get('location');
  if (![301, 302, 303, 307, 308].includes(response.status) || location === null) return null;
  if (!URL.canParse(location, request.url))
    throw upstream(`${request.url} redirected to "${location}", which is not a URL`);
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

/** Reads a response. Throws PAYLOAD_TOO_LARGE if the body exceeds `maxBytes`. */
export async function readReply(
  { url, discardBody }: FetchRequest,
  response: Response,
  redirected: boolean,
  maxBytes: number,
): Promise<FetchReply> {
  // A cancelled body has no chunks.
  if (discardBody && response.ok) await response.body?.cancel();
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Counts the decoded bytes, so that the limit also stops compression bombs.
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

export function upstream(what: string): PlatformError {
  return new PlatformError('UPSTREAM_UNAVAILABLE', `The call failed: ${what}.`);
}
