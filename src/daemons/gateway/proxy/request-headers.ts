import { type Caller, HEADERS } from '../../../contracts/index.ts';
import { createBoundedCache } from '../../../kit/data/bounded-cache.ts';
import { serviceKey } from '../../../kit/security/keys.ts';

/** Headers of the connection, not of the message (RFC 9110 7.6.1), or handled by the gateway. */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'http2-settings',
];

/** Headers that only the gateway may set, and the client's token, which upstreams must not see. */
const OURS = [
  ...Object.values(HEADERS),
  'traceparent',
  'authorization',
  'host',
  'content-length',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-port',
  'x-forwarded-prefix',
  'x-real-ip',
  'forwarded',
];

const DROPPED = new Set([...HOP_BY_HOP, ...OURS]);

/** Treats `_` as `-`, because some servers do. Clients may not use the prefix `x-svc-` at all. */
function isDropped(name: string): boolean {
  const normalized = name.toLowerCase().replaceAll('_', '-');
  return DROPPED.has(normalized) || normalized.startsWith('x-svc-');
}

const DISTINCT_NAMES = 1024;

/** Facts about a request for the upstream. */
export interface ForwardedRequest {
  rawHeaders: readonly string[];
  /** The `connection` header, which may name more headers to drop. */
  connection: string | undefined;
  caller: Caller;
  requestId: string;
  traceId: string;
  traceparent: string;
  /** The client's address, resolved through trusted proxies. */
  forwardedFor: string;
  forwardedHost: string;
  forwardedProto: 'http' | 'https';
  /** Bytes of the body; null without a body, or if it is chunked. */
  contentLength: number | null;
}

/** Builds the upstream request's headers as flat pairs. @spec Authentication 12 */
export function createRequestHeaders(internalSecret: string) {
  const key = serviceKey(internalSecret);
  // Clients use few spellings of a name; each is checked once.
  const verdicts = createBoundedCache<boolean>(DISTINCT_NAMES);

  function dropped(name: string): boolean {
    const known = verdicts.get(name);
    if (known !== undefined) return known;
    const verdict = isDropped(name);
    verdicts.set(name, verdict);
    return verdict;
  }

  return (request: ForwardedRequest): string[] => {
    const { rawHeaders, caller } = request;
    const named = namedByConnection(request.connection);
    const headers = [
      HEADERS.serviceKey,
      key,
      HEADERS.tenant,
      caller.namespaceId,
      HEADERS.host,
      caller.hostId,
      HEADERS.requestId,
      request.requestId,
      HEADERS.traceId,
      request.traceId,
      'traceparent',
      request.traceparent,
      'x-forwarded-for',
      request.forwardedFor,
      'x-forwarded-host',
      request.forwardedHost,
      'x-forwarded-proto',
      request.forwardedProto,
    ];
    if (request.contentLength !== null) headers.push('content-length', String(request.contentLength));
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const name = rawHeaders[i]!;
      if (dropped(name) || named?.has(name.toLowerCase())) continue;
      headers.push(name, rawHeaders[i + 1]!);
    }
    return headers;
  };
}

/** Headers that `Connection` declares hop-by-hop. Undefined for the usual values, which name none. */
function namedByConnection(connection: string | undefined): Set<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  return new Set(
    connection
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  );
}
