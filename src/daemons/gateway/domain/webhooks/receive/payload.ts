import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { type ChallengeConfig, LIMITS } from '../../../../../contracts/index.ts';
import { nestsDeeperThan, readDotPath } from '../../../../../kit/data/json.ts';
import type { SecretKey } from '../../../../../store/ports/index.ts';
import { singleHeader } from '../../raw-headers.ts';
import { endpointName } from './endpoint-name.ts';

/** A body that is valid JSON. */
export interface JsonPayload {
  value: unknown;
  /** The parsed text; saves serializing the value again. */
  text: string;
}

export type ParsedBody =
  | (JsonPayload & { fault?: undefined })
  | { value?: undefined; text?: undefined; fault: string };

/** Parses on first use, once; rejects deeply nested text before parsing. */
export function parseOnce(body: Buffer): () => ParsedBody {
  let parsed: ParsedBody | undefined;
  return () => {
    // Decoding invalid bytes would map them to one replacement character, and could merge distinct ids.
    parsed ??= isUtf8(body) ? parseBody(body) : { fault: 'it is not UTF-8' };
    return parsed;
  };
}

/** The payload of an accepted delivery, which is known to be JSON. */
export function payloadOf(body: Uint8Array | null): JsonPayload {
  const parsed = parseBody(Buffer.from(body ?? []));
  return parsed.fault === undefined ? parsed : { value: undefined, text: '' };
}

function parseBody(body: Buffer): ParsedBody {
  const text = body.toString('utf8');
  if (nestsDeeperThan(text, LIMITS.jsonDepth))
    return { fault: `it nests deeper than ${LIMITS.jsonDepth} levels` };
  try {
    return { value: JSON.parse(text), text };
  } catch (error) {
    return { fault: (error as Error).message };
  }
}

/**
 * The response to an endpoint verification request; undefined if the body is not one. @spec Webhook delivery
 * step 4
 */
export function answerChallenge(
  { bodyPath, value, replyPath }: ChallengeConfig,
  body: ParsedBody,
): { challenge: unknown } | undefined {
  if (readDotPath(body.value, bodyPath) !== value) return undefined;
  const challenge = readDotPath(body.value, replyPath);
  return challenge === undefined ? undefined : { challenge };
}

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
