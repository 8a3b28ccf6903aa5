/** Returns the path of a request target, without the query. */
export function pathOf(url: string): string {
  const end = url.indexOf('?');
  return end === -1 ? url : url.slice(0, end);
}

/**
 * Matches `.` and `..` segments, including percent-encoded segments. `;` ends a segment, because some servers remove
 * suffixes that start with `;`.
 */
const DOT_SEGMENT = /(?:^|\/|%2f|%5c)(?:\.|%2e){1,2}(?=\/|%2f|%5c|;|$)/i;
const BAD_ESCAPE = /%(?![0-9a-f]{2})/i;
const PLAIN = /^[\w/~!$&'()*+,;=:@-]*$/;

/**
 * Returns the reason to reject a path, or undefined if the path is valid. Rejects spellings that the router, the
 * authentication and the upstream could interpret differently. @spec docs/decisions/0020
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
  // Routers ignore everything after a "#" in a path, but string comparisons do not.
  if (path.includes('#')) return 'The path contains a "#".';
  return BAD_ESCAPE.test(path) ? 'The path has a malformed percent escape.' : undefined;
}

const PLAIN_DOT_SEGMENT = /(?:^|\/)\.{1,2}(?=\/|$)/;

/**
 * Returns the reason to reject the path of a webhook delivery. Accepts all percent-encoded characters, because webhook
 * URLs contain instance ids, which can have any characters.
 */
export function deliveryPathFault(path: string): string | undefined {
  if (PLAIN.test(path)) return undefined;
  const fault = spellingFault(path);
  if (fault) return fault;
  return PLAIN_DOT_SEGMENT.test(path) ? 'The path contains a "." or ".." segment.' : undefined;
}
