import { createHmac, type KeyObject } from 'node:crypto';
import type { Handshake, ReplyValue } from '../../contracts/index.ts';
import { isHmacChallenge } from './hmac-guard.ts';
import { type HandshakeRequest, readPlace } from './request.ts';

/** Response to a handshake. A `text` is sent as `text/plain`. */
export interface HandshakeReply {
  status: number;
  headers: Record<string, string>;
  text?: string;
  json?: Record<string, string | number>;
}

/** Maximum length of a value that a reply copies from the request. */
const MAX_ECHO_CHARS = 1024;
/** Printable ASCII. Other characters could change the meaning of a header, or the encoding of the reply. */
const PRINTABLE = /^[\x20-\x7e]+$/;

/** A value that must not be copied to the reply. */
export class HandshakeFault extends Error {}

/** Returns whether the reply contains an HMAC with the webhook's secret. */
export function repliesWithHmac({ reply }: Handshake): boolean {
  return [reply.text, ...Object.values(reply.json ?? {})].some(
    (value) => typeof value === 'object' && 'hmac' in value,
  );
}

/** Builds the reply. Throws HandshakeFault for a value that is missing, too long or not printable. */
export function handshakeReply(
  { reply }: Handshake,
  request: HandshakeRequest,
  hmacKey: KeyObject | undefined,
): HandshakeReply {
  const value = (given: ReplyValue) => replyValue(given, request, hmacKey);
  const headers: Record<string, string> = {};
  for (const [name, given] of Object.entries(reply.headers))
    headers[name.toLowerCase()] = typeof given === 'string' ? given : String(echoOf(given.from, request));
  const { status, text, json } = reply;
  if (json)
    return {
      status,
      headers,
      json: Object.fromEntries(Object.entries(json).map(([name, given]) => [name, value(given)])),
    };
  return { status, headers, text: text === undefined ? '' : String(value(text)) };
}

function replyValue(
  given: ReplyValue,
  request: HandshakeRequest,
  hmacKey: KeyObject | undefined,
): string | number {
  if (typeof given !== 'object') return given;
  if ('from' in given) return echoOf(given.from, request);
  const { of, encoding, prefix } = given.hmac;
  const challenge = readPlace(of, request);
  if (!isHmacChallenge(challenge))
    throw new HandshakeFault('The challenge must be 1 to 128 letters, digits and _ + / = -.');
  if (!hmacKey) throw new HandshakeFault('The webhook has no secret.');
  return prefix + createHmac('sha256', hmacKey).update(challenge).digest(encoding);
}

function echoOf(place: Parameters<typeof readPlace>[0], request: HandshakeRequest): string | number {
  const found = readPlace(place, request);
  if (typeof found === 'number' && Number.isFinite(found)) return found;
  if (typeof found !== 'string' || found.length > MAX_ECHO_CHARS || !PRINTABLE.test(found))
    throw new HandshakeFault(`The challenge must be 1 to ${MAX_ECHO_CHARS} printable ASCII characters.`);
  return found;
}
