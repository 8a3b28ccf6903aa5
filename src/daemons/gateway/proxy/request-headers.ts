import { ALL_NAMESPACES, type Caller, HEADERS } from '../../../contracts/index.ts';
import { createBoundedCache } from '../../../kit/data/bounded-cache.ts';
import { serviceKey } from '../../../kit/security/keys.ts';
import { roleIn } from '../domain/access/access-rights.ts';
import type { Admins } from '../domain/identity/admins.ts';
import type { Principal } from '../domain/identity/authenticator.ts';
import { withoutSessionCookies } from '../domain/identity/session-cookie.ts';

/** Headers that apply only to one connection (RFC 9110 7.6.1), and headers that the gateway handles itself. */
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

/**
 * Headers that only the gateway is allowed to set. `authorization` is included, because upstreams must not receive the
 * client's token.
 */
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

/**
 * Returns whether a client's header must be dropped. Underscores count as hyphens, because some servers would read
 * `x_tenant_id` as the gateway's `x-tenant-id`.
 */
function isDropped(name: string): boolean {
  const normalized = name.toLowerCase().replaceAll('_', '-');
  return DROPPED.has(normalized) || normalized.startsWith('x-svc-');
}

const MAX_CACHED_NAMES = 1024;

/** Data of the caller that services get. */
export type ForwardedCaller = Caller & { kind: Principal['kind'] | 'anonymous' };

/** The data from which the headers of an upstream request are built. */
export interface ForwardedRequest {
  rawHeaders: readonly string[];
  /** The client's `connection` header, which can name further headers that must not be forwarded. */
  connection: string | undefined;
  caller: ForwardedCaller;
  requestId: string;
  traceId: string;
  traceparent: string;
  /** The client's address, determined through trusted proxies. */
  forwardedFor: string;
  forwardedHost: string;
  forwardedProto: 'http' | 'https';
  /** Content-Length in bytes, or null for an empty or chunked body. */
  contentLength: number | null;
}

/**
 * Creates the function that builds the headers of upstream requests. The headers are a flat list of names and values.
 * @spec Authentication 12
 */
export function createRequestHeaders(internalSecret: string, admins: Pick<Admins, 'is'>) {
  const key = serviceKey(internalSecret);
  const verdicts = createBoundedCache<boolean>(MAX_CACHED_NAMES);

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
      HEADERS.role,
      shownRole(caller),
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
    if (hasRole(caller) && hasAllRights(caller) && admins.is(caller))
      headers.push(HEADERS.administrator, 'true');
    if (request.contentLength !== null) headers.push('content-length', String(request.contentLength));
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const name = rawHeaders[i]!;
      if (dropped(name) || named?.has(name.toLowerCase())) continue;
      const value = rawHeaders[i + 1]!;
      if (!isCookie(name)) headers.push(name, value);
      else pushCookies(headers, name, value);
    }
    return headers;
  };
}

/** Containers and callers without a token have no role. */
const hasRole = ({ kind }: ForwardedCaller): boolean => kind !== 'container' && kind !== 'anonymous';

/** The role `admin` in one namespace does not make up for a lower role for all namespaces. */
const hasAllRights = ({ access }: ForwardedCaller): boolean =>
  !access?.roles || access.roles.get(ALL_NAMESPACES) === 'admin';

/** A caller without any role keeps all rights of its token. */
function shownRole(caller: ForwardedCaller): string {
  if (!hasRole(caller)) return 'none';
  const { access, namespaceId } = caller;
  return access?.roles ? (roleIn(access.roles, namespaceId) ?? 'none') : 'admin';
}

function isCookie(name: string): boolean {
  return name.length === 6 && name.toLowerCase() === 'cookie';
}

/** Adds a `Cookie` header without the session of the studio. */
function pushCookies(headers: string[], name: string, value: string): void {
  const kept = withoutSessionCookies(value);
  if (kept !== '') headers.push(name, kept);
}

/** Returns the lower-case header names listed in `Connection`, if any. */
function namedByConnection(connection: string | undefined): Set<string> | undefined {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return undefined;
  return new Set(
    connection
      .toLowerCase()
      .split(',')
      .map((name) => name.trim()),
  );
}
