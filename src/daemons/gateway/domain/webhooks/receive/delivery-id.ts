import { createHash } from 'node:crypto';
import { readDotPath } from '../../../../../kit/data/json.ts';
import type { SecretKey } from '../../../../../store/ports/index.ts';
import { singleHeader } from '../../raw-headers.ts';
import { endpointName } from './endpoint-name.ts';
import type { ParsedBody } from './payload.ts';

const HEADER_PREFIX = 'header:';
/** Longer ids are replaced by their hash. */
const MAX_PLAIN_ID_CHARS = 200;

/**
 * The sender's delivery id: a dot-path in the body, or a header. Undefined without a string or number. A
 * number and its digits as a string are distinct ids. For numbers that parsing rounds, the id includes a
 * digest of the whole body.
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

/** Fractions with at most this many digits never collide as numbers. */
const EXACT_DIGITS = 15;

function isExact(id: number): boolean {
  if (Math.abs(id) > Number.MAX_SAFE_INTEGER) return false;
  return Number.isInteger(id) || String(id).replace(/\D/g, '').length <= EXACT_DIGITS;
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url');

/** Marker key of a delivery id. JSON, because any separator could be part of a field. */
export function markerKey(endpoint: SecretKey, deliveryId: string): string {
  return `${endpointName(endpoint).slice(0, -1)},${JSON.stringify(deliveryId)}]`;
}
