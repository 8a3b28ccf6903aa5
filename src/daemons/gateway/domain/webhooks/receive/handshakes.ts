import { createHash, timingSafeEqual } from 'node:crypto';
import type { BodyFormat, Handshake } from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import { permitsHmacReplies } from '../../../../../webhooks/handshakes/hmac-guard.ts';
import { findHandshake } from '../../../../../webhooks/handshakes/match.ts';
import {
  HandshakeFault,
  type HandshakeReply,
  handshakeReply,
  repliesWithHmac,
} from '../../../../../webhooks/handshakes/reply.ts';
import { type HandshakeRequest, readPlace } from '../../../../../webhooks/handshakes/request.ts';
import type { ReceiveRules } from '../../../../../webhooks/receive-rules.ts';
import type { ReplyContent } from '../dispatch/handler-reply.ts';
import type { Authentication } from '../verify/authentication.ts';
import type { VerificationKeys } from '../verify/verification-key.ts';
import type { Admitted } from './admission.ts';
import type { DeliveryContext } from './delivery-context.ts';
import type { ExpectedSecrets } from './expected-secrets.ts';
import { mark } from './step-log.ts';
import type { SubscriptionConfirmations } from './subscription-confirmations.ts';

export interface HandshakesDeps {
  authentication: Authentication;
  expected: Pick<ExpectedSecrets, 'take'>;
  confirmations: Pick<SubscriptionConfirmations, 'confirm'>;
}

/** Response to a handshake. */
export interface HandshakeAnswer {
  status: number;
  body: unknown;
  headers: Record<string, string>;
  content?: ReplyContent;
  /** Work that starts after the handshake was recorded. */
  afterRecord?: () => void;
}

/** Media type of text replies. With `nosniff`, no browser runs a reply as a script or page. */
const TEXT = 'text/plain; charset=utf-8';

/**
 * Answers handshakes: requests by which a sender verifies the URL, and which are no deliveries. @spec docs/webhooks.md
 * "Handshakes"
 */
export class Handshakes {
  readonly #deps: HandshakesDeps;

  constructor(deps: HandshakesDeps) {
    this.#deps = deps;
  }

  /** Resolves with the response, or with undefined if the request is no handshake. */
  async answer(
    context: DeliveryContext,
    admitted: Admitted,
    { handshakes, body }: ReceiveRules,
    request: HandshakeRequest,
  ): Promise<HandshakeAnswer | undefined> {
    const handshake = findHandshake(handshakes, request);
    mark(context, 'challenge', handshake ? 'answered' : 'none');
    if (!handshake) return undefined;
    const { authentication } = this.#deps;
    await (handshake.isAuthenticated
      ? authentication.authenticate(context, admitted)
      : authentication.allowUnauthenticated(context, admitted, { tries: false }));
    const { target, keys } = admitted;
    if (handshake.verifyToken && !isSecret(readPlace(handshake.verifyToken, request), keys))
      throw refused(context, 'verify_token', 'The verify token is not the secret of this webhook.');
    if (repliesWithHmac(handshake)) requireSafeHmac(context, admitted, body.format);
    const reply = replyTo(context, handshake, request, admitted);
    if (handshake.effect?.type === 'take-secret')
      await this.#deps.expected.take(context, target, readPlace(handshake.effect.at, request));
    const answer = withRate(answerOf(reply), handshake, target.webhook.rateLimit.requestsPerMinute);
    if (handshake.effect?.type !== 'confirm-subscription') return answer;
    const { payload } = request;
    return { ...answer, afterRecord: () => this.#deps.confirmations.confirm(context, payload) };
  }
}

/** Throws unless an HMAC of the request's value cannot be the signature of a delivery. */
function requireSafeHmac(context: DeliveryContext, { target, keys }: Admitted, format: BodyFormat): void {
  if (format !== 'json' || !permitsHmacReplies(target.webhook.auth))
    throw refused(context, 'hmac_unsafe', 'Signatures of this webhook do not cover a JSON body.');
  if (!keys) throw refused(context, 'unprovisioned', 'This webhook has no secret.');
}

function replyTo(
  context: DeliveryContext,
  handshake: Handshake,
  request: HandshakeRequest,
  { keys }: Admitted,
): HandshakeReply {
  try {
    return handshakeReply(handshake, request, keys?.current.hmacKey);
  } catch (error) {
    if (!(error instanceof HandshakeFault)) throw error;
    mark(context, 'challenge', 'VALIDATION_ERROR');
    throw new PlatformError('VALIDATION_ERROR', error.message);
  }
}

function refused(context: DeliveryContext, reason: string, message: string): PlatformError {
  mark(context, 'challenge', reason);
  return new PlatformError('UNAUTHORIZED', message);
}

const NONE = Buffer.alloc(32);

/** Compares digests in constant time, with both secrets in any case. */
function isSecret(value: unknown, keys: VerificationKeys | undefined): boolean {
  const digest = createHash('sha256')
    .update(typeof value === 'string' ? value : '')
    .digest();
  const isCurrent = timingSafeEqual(digest, keys?.current.digest ?? NONE);
  const isPrevious = timingSafeEqual(digest, keys?.previous?.digest ?? NONE);
  return typeof value === 'string' && (isCurrent || isPrevious);
}

function answerOf({ status, headers, text, json }: HandshakeReply): HandshakeAnswer {
  if (json) return { status, headers, body: json };
  const data = text ?? '';
  return { status, headers, body: data, content: { type: data === '' ? undefined : TEXT, data } };
}

const ALLOWED_ORIGIN = 'webhook-allowed-origin';
const ALLOWED_RATE = 'webhook-allowed-rate';

/** Adds the deliveries per minute that CloudEvents senders must keep to (HTTP Webhook, section 4.2). */
function withRate(answer: HandshakeAnswer, { method }: Handshake, perMinute: number): HandshakeAnswer {
  const { headers } = answer;
  if (method !== 'OPTIONS' || headers[ALLOWED_ORIGIN] === undefined || headers[ALLOWED_RATE] !== undefined)
    return answer;
  return { ...answer, headers: { ...headers, [ALLOWED_RATE]: String(perMinute) } };
}
