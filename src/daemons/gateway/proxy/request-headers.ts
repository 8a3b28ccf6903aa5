import { type Caller, HEADERS } from '../../../contracts/index.ts';
import { createBoundedCache } from '../../../kit/data/bounded-cache.ts';
import { serviceKey } from '../../../kit/security/keys.ts';

/** Of one connection, not of the message (RFC 9110 7.6.1), or settled between the client and us. */
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

/** What the gateway says of a caller, so that a client cannot; and the token itself, which is no business of upstreams. */
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

/** Some servers read `X_Tenant_ID` as `X-Tenant-ID`, so both are one name here; nothing of a client's may begin like ours either. */
function isDropped(name: string): boolean {
  const plain = name.toLowerCase().replaceAll('_', '-');
  return DROPPED.has(plain) || plain.startsWith('x-svc-');
}

const DISTINCT_NAMES = 1024;

/** What the gateway tells an upstream about one request. */
export interface ForwardedRequest {
  rawHeaders: readonly string[];
  /** Values of `connection`, which may name more headers to drop. */
  connection: string | undefined;
  caller: Caller;
  requestId: string;
  traceId: string;
  traceparent: string;
  /** The address of the client, behind those that trusted proxies reported. */
  forwardedFor: string;
  forwardedHost: string;
  forwardedProto: 'http' | 'https';
  /** Bytes of the body; null when there is none, or none told. */
  contentLength: number | null;
}

/** Builds the headers of the upstream request in one pass, as a flat list of names and values. @spec Authentication 12 */
export function createRequestHeaders(internalSecret: string) {
  const key = serviceKey(internalSecret);
  // Names come in few spellings; each is folded and looked up once.
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

/** The headers that `Connection: close, x-foo` makes hop-by-hop, apart from the two everyday options. */
function namedByConnection(connection: string | undefined): Set<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  return new Set(
    connection
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  );
}
