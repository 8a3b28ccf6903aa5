/** The path of a request target, without its query. */
export function pathOf(url: string): string {
  const end = url.indexOf('?');
  return end === -1 ? url : url.slice(0, end);
}

/** A segment that is, or that some server behind us could decode to, `.` or `..`. */
const DOT_SEGMENT = /(?:^|\/|%2f|%5c)(?:\.|%2e){1,2}(?=\/|%2f|%5c|$)/i;
const BAD_ESCAPE = /%(?![0-9a-f]{2})/i;
const PLAIN = /^[\w/~!$&'()*+,;=:@-]*$/;

/**
 * Why a path is refused; undefined when it may be forwarded. Router, authentication and upstream must read one path, so
 * what proxies and servers are known to read in different ways does not pass. @spec docs/decisions.md "Paths"
 */
export function pathFault(path: string): string | undefined {
  if (PLAIN.test(path)) return undefined;
  if (path.includes('\\')) return 'The path holds a backslash.';
  if (BAD_ESCAPE.test(path)) return 'The path has a malformed percent escape.';
  if (/%00/.test(path)) return 'The path holds an encoded NUL.';
  if (DOT_SEGMENT.test(path)) return 'The path holds a "." or ".." segment.';
  return undefined;
}

const PLAIN_DOT_SEGMENT = /(?:^|\/)\.{1,2}(?=\/|$)/;

/** As `pathFault` for deliveries, whose instance ids may hold any character, escaped. */
export function deliveryPathFault(path: string): string | undefined {
  if (PLAIN.test(path)) return undefined;
  if (path.includes('\\')) return 'The path holds a backslash.';
  if (BAD_ESCAPE.test(path)) return 'The path has a malformed percent escape.';
  if (PLAIN_DOT_SEGMENT.test(path)) return 'The path holds a "." or ".." segment.';
  return undefined;
}
