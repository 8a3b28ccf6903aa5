import { PlatformError } from '../../kit/errors/errors.ts';

const MAX_KEY_CHARS = 512;
/** Maximum length of a file name in common file systems. */
const MAX_SEGMENT_BYTES = 255;
// biome-ignore lint/suspicious/noControlCharactersInRegex: keys must not contain control characters
const NOT_IN_KEYS = /[\\\u0000-\u001f\u007f]/;

/** Throws VALIDATION_ERROR if an object key is malformed or has `.` or `..` as a path segment. */
export function requireObjectKey(key: string): void {
  const fault = faultOf(key);
  if (!fault) return;
  throw new PlatformError('VALIDATION_ERROR', `The key ${JSON.stringify(key.slice(0, 80))} ${fault}.`);
}

function faultOf(key: string): string | undefined {
  if (key.length === 0 || key.length > MAX_KEY_CHARS) return `must have 1 to ${MAX_KEY_CHARS} characters`;
  if (!key.isWellFormed()) return 'contains half of a surrogate pair';
  if (NOT_IN_KEYS.test(key)) return 'contains a backslash or a control character';
  for (const segment of key.split('/')) {
    if (segment === '')
      return 'has an empty segment. Remove slashes at its start and end, and double slashes';
    if (segment === '.' || segment === '..')
      return `has the segment "${segment}", which could lead out of its folder`;
    if (Buffer.byteLength(segment) > MAX_SEGMENT_BYTES)
      return `has a segment of more than ${MAX_SEGMENT_BYTES} bytes`;
  }
  return undefined;
}
