import type { WebhookAuthConfig } from '../../contracts/index.ts';
import { providerOf } from '../providers/index.ts';

/**
 * A handshake can reply to an unauthenticated request with an HMAC of the request's text, computed with the webhook's
 * secret. Three rules ensure that this HMAC is never a valid signature of a delivery. The text has only letters, digits
 * and `_ + / = -`. A signature covers the body. The body of a delivery is a JSON object or array, so every signed text
 * has a bracket or brace. @spec docs/decisions/0235
 */
const CHALLENGE = /^[A-Za-z0-9_+/=-]{1,128}$/;

/** Returns whether a text may be the input of an HMAC reply. */
export function isHmacChallenge(value: unknown): value is string {
  return typeof value === 'string' && CHALLENGE.test(value);
}

/** Returns whether all signatures of this `auth` cover the whole body, so that HMAC replies are safe. */
export function permitsHmacReplies(auth: WebhookAuthConfig): boolean {
  switch (auth.type) {
    case 'hmac':
      return true;
    case 'signature':
      return auth.signed.includes('{body}');
    case 'provider':
      return providerOf(auth.provider).auth.every(
        (scheme) => scheme.type === 'signature' && scheme.signed.includes('{body}'),
      );
    default:
      return false;
  }
}

/** Returns whether a parsed body may be a delivery of a webhook with HMAC replies. */
export function isGuardedBody(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}
