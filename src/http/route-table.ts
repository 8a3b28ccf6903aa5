import { PlatformError } from '../kit/errors.ts';

/** A route as the server knows it. */
export interface RegisteredRoute {
  method: string;
  /** The pattern: `/a/:id`, `/docs/*`. */
  path: string;
}

/** Which methods the routes at a raw path take, `HEAD` wherever there is `GET`; empty when there is nothing at that path. */
export function allowedMethods(routes: readonly RegisteredRoute[], rawPath: string): string[] {
  const methods = new Set<string>();
  for (const { method, path } of routes) {
    if (methods.has(method) || !matches(path, rawPath)) continue;
    methods.add(method);
    if (method === 'GET') methods.add('HEAD');
  }
  return [...methods].sort();
}

/** The path is there, and takes other methods. */
export function methodNotAllowed(method: string, path: string, allowed: readonly string[]): PlatformError {
  return new PlatformError('METHOD_NOT_ALLOWED', `${path} takes ${allowed.join(', ')}, not ${method}.`, {
    details: { method, allowed },
    headers: { allow: allowed.join(', ') },
  });
}

/** Compared segment by segment without decoding: only a hint for `Allow` hangs on it, never access. */
function matches(pattern: string, rawPath: string): boolean {
  const wanted = pattern.split('/');
  const given = rawPath.split('/');
  for (const [index, part] of wanted.entries()) {
    if (part === '*') return true;
    const segment = given[index];
    if (segment === undefined || (part.startsWith(':') ? segment === '' : part !== segment)) return false;
  }
  return wanted.length === given.length;
}
