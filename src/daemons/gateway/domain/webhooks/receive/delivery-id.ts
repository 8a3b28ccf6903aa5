import { createHash } from 'node:crypto';
import { readDotPath } from '../../../../../kit/data/json.ts';
import { singleHeader } from '../../../../../kit/data/raw-headers.ts';
import type { SecretKey } from '../../../../../store/ports/index.ts';
import { endpointName } from './endpoint-name.ts';
import type { ParsedBody } from './payload.ts';

const HEADER_PREFIX = 'header:';
/** Maximum length of a stored delivery id, in characters. Longer ids are replaced by their hash. */
const MAX_PLAIN_ID_CHARS = 200;

/**
 * Returns the sender's delivery id, or undefined if the value is neither a string nor a number. The ids `5` and `"5"`
 * differ. If parsing a number loses digits, the id contains a digest of the body.
 */
export function deliveryIdOf(
  source: string,
  rawHeaders: readonly string[],
  payload: () => ParsedBody,
): string | undefined {
  const id = source.startsWith(HEADER_PREFIX)
    ? singleHeader(rawHeaders, source.slice(HEADER_PREFIX.length))
    : readDotPath(payload().value, source);
  if (typeof id === 'number') return isExact(id) ? `n:${id}` : `b:${id}:${digest(payload().text!)}`;
  if (typeof id !== 'string' || id === '') return undefined;
  return id.length <= MAX_PLAIN_ID_CHARS ? `s:${id}` : `h:${digest(id)}`;
}

/** Different decimal fractions with at most this many digits always parse to different numbers. */
const EXACT_DIGITS = 15;

function isExact(id: number): boolean {
  if (Math.abs(id) > Number.MAX_SAFE_INTEGER) return false;
  return Number.isInteger(id) || String(id).replace(/\D/g, '').length <= EXACT_DIGITS;
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url');

/** Returns the dedupe marker key of a delivery id. The key is JSON, because its fields can contain any separator. */
export function markerKey(endpoint: SecretKey, deliveryId: string): string {
  return `${endpointName(endpoint).slice(0, -1)},${JSON.stringify(deliveryId)}]`;
}
