/** The path of a request target, without its query. */
export function pathOf(url: string): string {
  const end = url.indexOf('?');
  return end === -1 ? url : url.slice(0, end);
}

/** A segment that is, or that some server behind us could decode to, `.` or `..`; some drop what follows a `;` first. */
const DOT_SEGMENT = /(?:^|\/|%2f|%5c)(?:\.|%2e){1,2}(?=\/|%2f|%5c|;|$)/i;
const BAD_ESCAPE = /%(?![0-9a-f]{2})/i;
const PLAIN = /^[\w/~!$&'()*+,;=:@-]*$/;

/**
 * Why a path is refused; undefined when it may be forwarded. Router, authentication and upstream must read one path, so
 * what proxies and servers are known to read in different ways does not pass. @spec docs/decisions/0020
 */
export function pathFault(path: string): string | undefined {
  if (PLAIN.test(path)) return undefined;
  const fault = spellingFault(path);
  if (fault) return fault;
  if (/%00/.test(path)) return 'The path holds an encoded NUL.';
  if (DOT_SEGMENT.test(path)) return 'The path holds a "." or ".." segment.';
  return undefined;
}

function spellingFault(path: string): string | undefined {
  if (path.includes('\\')) return 'The path holds a backslash.';
  // A router ends the path there, and who compares paths as they stand does not.
  if (path.includes('#')) return 'The path holds a "#".';
  return BAD_ESCAPE.test(path) ? 'The path has a malformed percent escape.' : undefined;
}

const PLAIN_DOT_SEGMENT = /(?:^|\/)\.{1,2}(?=\/|$)/;

/** As `pathFault` for deliveries, whose instance ids may hold any character, escaped. */
export function deliveryPathFault(path: string): string | undefined {
  if (PLAIN.test(path)) return undefined;
  const fault = spellingFault(path);
  if (fault) return fault;
  return PLAIN_DOT_SEGMENT.test(path) ? 'The path holds a "." or ".." segment.' : undefined;
}
