import type { Clock } from '../../../../kit/clock.ts';
import { minutes } from '../../../../kit/duration.ts';
import { codeOf, PlatformError } from '../../../../kit/errors.ts';
import type { Logger } from '../../../../kit/logger.ts';
import { type MaybePromise, onceKnown } from '../../../../kit/maybe-promise.ts';
import { type CreateLimiter, createRateLimiter } from '../../../../kit/rate-limiter.ts';
import type { Admitted } from './admission.ts';
import { BoundedTurns } from './bounded-turns.ts';
import { endpointName } from './endpoint-name.ts';
import { explainRefusal } from './explanation.ts';
import type { Passage } from './passage.ts';
import { authenticHeaders } from './request-head.ts';
import { describe, type WebhookSecrets } from './secrets.ts';
import { SenderBudget } from './sender-budget.ts';
import { senderNetwork } from './sender-network.ts';
import type { SignatureVerdict } from './signature.ts';
import { mark } from './steps.ts';
import type { WebhookVerifier } from './verifier.ts';

export interface AuthenticationDeps {
  verifier: WebhookVerifier;
  secrets: WebhookSecrets;
  createLimiter: CreateLimiter;
  clock: Clock;
  logger: Logger;
}

type Refusal = Extract<SignatureVerdict, { valid: false }>;

const EXPLANATIONS_PER_MINUTE = 300;
/** Validations of one endpoint for addresses whose budget is used up: at a time, and waiting. Addresses take turns. */
const MAX_DOUBTED_AT_ONCE = 2;
const MAX_DOUBTED_WAITING = 100;

/** Step 6: who sends, and for the operator alone why somebody was refused. @spec Webhook delivery step 6 */
export function createAuthentication({
  verifier,
  secrets,
  createLimiter,
  clock,
  logger,
}: AuthenticationDeps) {
  const budget = new SenderBudget(createLimiter);
  const doubted = new BoundedTurns({ concurrency: MAX_DOUBTED_AT_ONCE, maxWaiting: MAX_DOUBTED_WAITING });
  /** Of each process: what it bounds is each one's own work. */
  const explanations = createRateLimiter(clock, minutes(1));

  /** An exhausted budget keeps no signature from being checked, but validators are plugin code: they run a few at a time. */
  function verify(passage: Passage, { target, keys }: Admitted): MaybePromise<SignatureVerdict> {
    const run = () => verifier.verify(target, passage.incoming.rawHeaders, passage.body!, keys, passage);
    const refusal = target.webhook.auth.type === 'custom' && keys ? budget.refusal(passage) : undefined;
    return refusal
      ? doubted.run(
          { key: endpointName(passage), lane: senderNetwork(passage.incoming.source) },
          async () => run(),
          () => refusal,
        )
      : run();
  }

  /** Explained by what usually goes wrong, as long as explaining does not become the work. */
  function explain({ incoming, body }: Passage, { target, keys }: Admitted, refusal: Refusal) {
    const { auth } = target.webhook;
    if (auth.type === 'custom')
      return { reason: refusal.fault, hint: "The plugin's own validator said no; see its log." };
    if (!explanations.take('', EXPLANATIONS_PER_MINUTE).allowed) return null;
    const { rawHeaders } = incoming;
    return explainRefusal({ auth, ...refusal, rawHeaders, body: body!, keys, nowMs: clock.now() });
  }

  function refused(passage: Passage, admitted: Admitted, refusal: Refusal): PlatformError {
    const { incoming, namespaceId, pluginId, webhookId } = passage;
    const exhausted = budget.refusal(passage);
    if (exhausted) {
      mark(passage, 'authentication', 'too_many_failures');
      return exhausted;
    }
    mark(passage, 'authentication', refusal.fault);
    budget.charge(passage);
    passage.refusal = JSON.stringify({ explanation: explain(passage, admitted, refusal) });
    logger.diagnostic(
      {
        domain: 'webhook',
        event: 'webhook.authentication_failed',
        level: 'warn',
        reasonCode: refusal.fault.toUpperCase(),
        message: `A delivery to ${describe(passage)} was refused: ${refusal.fault}`,
        outcome: 'refused',
        evidence: {
          ...{ webhookId, namespaceId, source: incoming.source },
          authType: admitted.target.webhook.auth.type,
        },
      },
      // No tenant: an unauthenticated sender chooses the namespace, and would write into the log of its victim.
      { requestId: incoming.requestId, traceId: incoming.traceId, pluginId },
    );
    return new PlatformError(
      'UNAUTHORIZED',
      'The delivery is not authentic: check the secret and how it is sent.',
    );
  }

  /** Undefined, with the reason in the record, where a validator failed. */
  function undecidedAs(
    passage: Passage,
    verified: MaybePromise<SignatureVerdict>,
  ): MaybePromise<SignatureVerdict | undefined> {
    if (!(verified instanceof Promise)) return verified;
    return verified.catch((error) => {
      mark(passage, 'authentication', codeOf(error) ?? 'failed');
      return undefined;
    });
  }

  function proven(passage: Passage, { target, keys }: Admitted, secret: 'current' | 'previous'): void {
    mark(passage, 'authentication', `ok (${secret})`);
    if (secret === 'previous') secrets.notePreviousUse(keyOf(passage), keys!);
    passage.headers = authenticHeaders(passage.incoming, authHeaderOf(target), keys);
    passage.caller = { hostId: `webhook:${passage.pluginId}`, namespaceId: passage.namespaceId };
  }

  return {
    /** The passage has its body and gets its caller. Throws UNAUTHORIZED, RATE_LIMIT_EXCEEDED, HOST_UNAVAILABLE. */
    authenticate(passage: Passage, admitted: Admitted): MaybePromise<void> {
      return onceKnown(verify(passage, admitted), (verdict) => {
        if (!verdict.valid) throw refused(passage, admitted, verdict);
        proven(passage, admitted, verdict.secret);
      });
    },

    /**
     * Lets in what is answered without proof, a challenge or a known delivery id, and charges the sender's address. Throws
     * RATE_LIMIT_EXCEEDED when the budget of the address is used up and the request proves nothing. With `tries` the record
     * says whether it was authentic; a validator that cannot run then changes nothing.
     */
    tolerate(passage: Passage, admitted: Admitted, { tries }: { tries: boolean }): MaybePromise<void> {
      const exhausted = budget.refusal(passage);
      budget.charge(passage);
      if (!exhausted && !tries) return undefined;
      const verified = verify(passage, admitted);
      return onceKnown(exhausted ? verified : undecidedAs(passage, verified), (verdict) => {
        if (!verdict) return;
        if (verdict.valid) return proven(passage, admitted, verdict.secret);
        mark(passage, 'authentication', exhausted ? 'too_many_failures' : verdict.fault);
        if (exhausted) throw exhausted;
      });
    },
  };
}

function authHeaderOf({ webhook: { auth } }: Admitted['target']): string | undefined {
  return auth.type === 'secret' || auth.type === 'hmac' ? auth.header : undefined;
}

function keyOf({ namespaceId, pluginId, event, instanceId }: Passage) {
  return { namespaceId, pluginId, event, instanceId };
}
