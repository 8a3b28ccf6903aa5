import { PlatformError } from '../../kit/errors/errors.ts';

const KEY_CHARS = 512;
/** Maximum length of one name in common file systems. */
const PART_BYTES = 255;
// biome-ignore lint/suspicious/noControlCharactersInRegex: keys must not contain control characters
const NOT_IN_KEYS = /[\\\u0000-\u001f\u007f]/;

/** Throws VALIDATION_ERROR for an invalid key, or one that could escape its folder. */
export function requireObjectKey(key: string): void {
  const fault = faultOf(key);
  if (!fault) return;
  throw new PlatformError('VALIDATION_ERROR', `The key ${JSON.stringify(key.slice(0, 80))} ${fault}.`);
}

function faultOf(key: string): string | undefined {
  if (key.length === 0 || key.length > KEY_CHARS) return `must have 1 to ${KEY_CHARS} characters`;
  if (!key.isWellFormed()) return 'holds half of a surrogate pair';
  if (NOT_IN_KEYS.test(key)) return 'holds a backslash or a control character';
  for (const part of key.split('/')) {
    if (part === '') return 'has an empty part: no slash at its ends, no two in a row';
    if (part === '.' || part === '..') return `has the part "${part}", which could lead elsewhere`;
    if (Buffer.byteLength(part) > PART_BYTES) return `has a part of more than ${PART_BYTES} bytes`;
  }
  return undefined;
}
