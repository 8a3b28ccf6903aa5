import type { IncomingMessage } from 'node:http';

const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i;

/**
 * The path and query of a request target. Proxies may send the absolute form, whose authority then counts instead of
 * the Host header (RFC 9112 3.2.2); all who look at the host must see that one.
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
