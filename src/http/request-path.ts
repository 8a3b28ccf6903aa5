/** Returns the path of a request target, without the query. */
export function pathOf(url: string): string {
  const end = url.indexOf('?');
  return end === -1 ? url : url.slice(0, end);
}

/**
 * Matches `.` and `..` segments, including percent-encoded ones. A `;` also ends a segment, because some servers remove
 * a suffix that starts with `;`.
 */
const DOT_SEGMENT = /(?:^|\/|%2f|%5c)(?:\.|%2e){1,2}(?=\/|%2f|%5c|;|$)/i;
const BAD_ESCAPE = /%(?![0-9a-f]{2})/i;
const PLAIN = /^[\w/~!$&'()*+,;=:@-]*$/;

/**
 * Returns the reason to reject a path, or undefined if the path is valid. The router, the authentication and the
 * upstream must interpret a path identically, so ambiguous spellings are rejected. @spec docs/decisions/0020
 */
export function pathFault(path: string): string | undefined {
  if (PLAIN.test(path)) return undefined;
  const fault = spellingFault(path);
  if (fault) return fault;
  if (/%00/.test(path)) return 'The path contains an encoded NUL.';
  if (DOT_SEGMENT.test(path)) return 'The path contains a "." or ".." segment.';
  return undefined;
}

function spellingFault(path: string): string | undefined {
  if (path.includes('\\')) return 'The path contains a backslash.';
  // A router ignores the part of a path after a "#", but a string comparison of paths does not.
  if (path.includes('#')) return 'The path contains a "#".';
  return BAD_ESCAPE.test(path) ? 'The path has a malformed percent escape.' : undefined;
}

const PLAIN_DOT_SEGMENT = /(?:^|\/)\.{1,2}(?=\/|$)/;

/**
 * Returns the reason to reject the path of a webhook delivery. Unlike `pathFault`, accepts all percent-encoded
 * characters, because webhook URLs contain instance ids.
 */
export function deliveryPathFault(path: string): string | undefined {
  if (PLAIN.test(path)) return undefined;
  const fault = spellingFault(path);
  if (fault) return fault;
  return PLAIN_DOT_SEGMENT.test(path) ? 'The path contains a "." or ".." segment.' : undefined;
}
