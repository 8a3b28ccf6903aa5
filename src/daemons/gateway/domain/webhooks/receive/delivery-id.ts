import { createHash } from 'node:crypto';
import { readDotPath } from '../../../../../kit/data/json.ts';
import type { SecretKey } from '../../../../../store/ports/index.ts';
import { singleHeader } from '../../raw-headers.ts';
import { endpointName } from './endpoint-name.ts';
import type { ParsedBody } from './payload.ts';

const HEADER_PREFIX = 'header:';
/** Maximum characters of an id. Longer ids are replaced by their hash. */
const MAX_PLAIN_ID_CHARS = 200;

/**
 * Returns the sender's delivery id from a body field or a header; undefined unless the value is a string or number. `5`
 * and `"5"` are different ids. Numbers that lose digits in parsing get a digest of the body.
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

/** Maximum number of digits of a fraction that is parsed precisely enough for different values to stay different. */
const EXACT_DIGITS = 15;

function isExact(id: number): boolean {
  if (Math.abs(id) > Number.MAX_SAFE_INTEGER) return false;
  return Number.isInteger(id) || String(id).replace(/\D/g, '').length <= EXACT_DIGITS;
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url');

/** Returns the marker key of a delivery id. It is JSON, because fields may contain any separator. */
export function markerKey(endpoint: SecretKey, deliveryId: string): string {
  return `${endpointName(endpoint).slice(0, -1)},${JSON.stringify(deliveryId)}]`;
}
