import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { type ChallengeConfig, LIMITS } from '../../../../contracts/index.ts';
import { nestsDeeperThan, readDotPath } from '../../../../kit/json.ts';
import type { SecretKey } from '../../../../store/ports/index.ts';
import { singleHeader } from '../raw-headers.ts';
import { endpointName } from './endpoint-name.ts';

/** A body that is JSON. */
export interface JsonPayload {
  value: unknown;
  /** What it was parsed of: whoever passes it on need not write it anew. */
  text: string;
}

export type ParsedBody =
  | (JsonPayload & { fault?: undefined })
  | { value?: undefined; text?: undefined; fault: string };

/** Parses at the first need and once; text that nests too deep is refused before it reaches the parser. */
export function parseOnce(body: Buffer): () => ParsedBody {
  let parsed: ParsedBody | undefined;
  return () => {
    // Read all the same, other bytes become one and the same character: two ids would be one.
    parsed ??= isUtf8(body) ? parseBody(body) : { fault: 'it is not UTF-8' };
    return parsed;
  };
}

/** The payload of a delivery that was accepted, and so is JSON. */
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

/** The answer to an endpoint-verification request; undefined when the body is none. @spec Webhook delivery step 4 */
export function answerChallenge(
  { bodyPath, value, replyPath }: ChallengeConfig,
  body: ParsedBody,
): { challenge: unknown } | undefined {
  if (readDotPath(body.value, bodyPath) !== value) return undefined;
  const challenge = readDotPath(body.value, replyPath);
  return challenge === undefined ? undefined : { challenge };
}

const HEADER_PREFIX = 'header:';
/** An id longer than this is known by its hash. */
const LONGEST_PLAIN_ID = 200;

/**
 * The sender's id of a delivery: by dot-path in the body, or of a header. Undefined when it brings none,
 * or nothing that can be an id (text or a number). A number and its digits as text are two ids. Parsing rounds numbers
 * beyond 2^53 and fractions of many digits: of two that look alike then, the whole body tells whether they are one.
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
  return id.length <= LONGEST_PLAIN_ID ? `s:${id}` : `h:${digest(id)}`;
}

/** No two fractions of so many digits become one number. */
const EXACT_DIGITS = 15;

function isExact(id: number): boolean {
  if (Math.abs(id) > Number.MAX_SAFE_INTEGER) return false;
  return Number.isInteger(id) || String(id).replace(/\D/g, '').length <= EXACT_DIGITS;
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url');

/** Names a delivery for 7 days. JSON keeps the parts apart whatever characters they hold. */
export function markerKey(endpoint: SecretKey, deliveryId: string): string {
  return `${endpointName(endpoint).slice(0, -1)},${JSON.stringify(deliveryId)}]`;
}
