import type { IncomingMessage } from 'node:http';

const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i;

/**
 * Returns the path and query of a request target. The host of an absolute URL replaces the `Host` header (RFC 9112
 * 3.2.2).
 */
export function originForm(request: IncomingMessage): string {
  const url = request.url!;
  if (url.charCodeAt(0) === 0x2f) return url;
  const match = ABSOLUTE.exec(url);
  if (!match) return url;
  const [, authority, rest] = match as unknown as [string, string, string];
  request.headers.host = authority;
  return rest.startsWith('/') ? rest : `/${rest}`;
}
