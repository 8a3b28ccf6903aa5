import { PlatformError } from '../kit/errors/errors.ts';

export interface RegisteredRoute {
  method: string;
  /** Path pattern, such as `/a/:id` or `/docs/*`. */
  path: string;
}

/**
 * Returns the methods that a path supports, including `HEAD` if it supports `GET`. The list is empty if no route
 * matches.
 */
export function allowedMethods(routes: readonly RegisteredRoute[], rawPath: string): string[] {
  const methods = new Set<string>();
  for (const { method, path } of routes) {
    if (methods.has(method) || !matches(path, rawPath)) continue;
    methods.add(method);
    if (method === 'GET') methods.add('HEAD');
  }
  return [...methods].sort();
}

/** Returns the 405 error for a path that supports only other methods. */
export function methodNotAllowed(method: string, path: string, allowed: readonly string[]): PlatformError {
  return new PlatformError('METHOD_NOT_ALLOWED', `${path} supports ${allowed.join(', ')}, not ${method}.`, {
    details: { method, allowed },
    headers: { allow: allowed.join(', ') },
  });
}

/**
 * Matches a path to a pattern without decoding the segments. The result is only for the `Allow` header, and not safe
 * for access checks.
 */
function matches(pattern: string, rawPath: string): boolean {
  const patternParts = pattern.split('/');
  const pathParts = rawPath.split('/');
  for (const [index, part] of patternParts.entries()) {
    if (part === '*') return true;
    const segment = pathParts[index];
    if (segment === undefined || (part.startsWith(':') ? segment === '' : part !== segment)) return false;
  }
  return patternParts.length === pathParts.length;
}
