import { type MaybePromise, onceKnown } from '../../../../../kit/data/maybe-promise.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import { hasHandshake } from '../../../../../webhooks/handshakes/match.ts';
import type { ReceiveRules } from '../../../../../webhooks/receive-rules.ts';
import type { Authentication } from '../verify/authentication.ts';
import type { Admitted } from './admission.ts';
import { answerChallenge } from './challenge.ts';
import { requireContentType } from './content-type.ts';
import type { Answered } from './delivery-answer.ts';
import type { DeliveryContext } from './delivery-context.ts';
import { Handshakes, type HandshakesDeps } from './handshakes.ts';
import type { ParsedBody } from './payload.ts';
import { mark } from './step-log.ts';

/** Answers requests that senders make at set-up. They run no handler. */
export class EarlyAnswers {
  readonly #authentication: Authentication;
  readonly #handshakes: Handshakes;

  constructor(deps: HandshakesDeps & { authentication: Authentication }) {
    this.#authentication = deps.authentication;
    this.#handshakes = new Handshakes(deps);
  }

  /** Answers a handshake or a challenge. Throws METHOD_NOT_ALLOWED for any other request that is no POST. */
  answer(
    context: DeliveryContext,
    admitted: Admitted,
    rules: ReceiveRules,
    payload: () => ParsedBody,
  ): MaybePromise<Answered | undefined> {
    const { challenge } = admitted.target.webhook;
    if (rules.handshakes.length > 0) return this.#answerHandshake(context, admitted, rules, payload);
    if (!challenge) return undefined;
    const body = answerChallenge(challenge, payload());
    mark(context, 'challenge', body ? 'answered' : 'none');
    if (!body) return undefined;
    const allowed = this.#authentication.allowUnauthenticated(context, admitted, { tries: false });
    return onceKnown(allowed, () => ({ status: 200, body, record: 'challenge' }));
  }

  async #answerHandshake(
    context: DeliveryContext,
    admitted: Admitted,
    rules: ReceiveRules,
    payload: () => ParsedBody,
  ): Promise<Answered | undefined> {
    const { method, rawHeaders, url } = context.incoming;
    if (hasHandshake(rules.handshakes, method)) {
      const request = { method, rawHeaders, url, payload: payload().value };
      const answered = await this.#handshakes.answer(context, admitted, rules, request);
      if (answered) return { ...answered, record: 'challenge' };
    }
    if (method !== 'POST')
      throw new PlatformError(
        'METHOD_NOT_ALLOWED',
        `This ${method} request is no handshake of the webhook.`,
        {
          headers: { allow: 'POST' },
        },
      );
    requireContentType(context, rules);
    const { webhook } = admitted.target;
    if (!webhook.challenge) return undefined;
    return this.answer(context, admitted, { ...rules, handshakes: [] }, payload);
  }
}
