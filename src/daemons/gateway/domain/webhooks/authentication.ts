import { LIMITS } from '../../../../contracts/index.ts';
import type { Clock } from '../../../../kit/clock.ts';
import { minutes } from '../../../../kit/duration.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import type { Logger } from '../../../../kit/logger.ts';
import { type MaybePromise, onceKnown } from '../../../../kit/maybe-promise.ts';
import { type CreateLimiter, createRateLimiter } from '../../../../kit/rate-limiter.ts';
import type { Admitted } from './admission.ts';
import { explainRefusal } from './explanation.ts';
import { tooMany } from './limits.ts';
import type { Passage } from './passage.ts';
import { authenticHeaders } from './request-head.ts';
import { describe, type WebhookSecrets } from './secrets.ts';
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

/** Step 6: who sends, and for the operator alone why somebody was refused. @spec Webhook delivery step 6 */
export function createAuthentication({
  verifier,
  secrets,
  createLimiter,
  clock,
  logger,
}: AuthenticationDeps) {
  /** Refused signatures by address and namespace. */
  const failures = createLimiter('webhook failures', { windowMs: minutes(1), exact: true });
  /** Of each process: what it bounds is each one's own work. */
  const explanations = createRateLimiter(clock, minutes(1));

  /** An address that fails and fails is not checked again for a while: neither plugin code nor records for it. */
  function limitFailures(passage: Passage): void {
    const limit = LIMITS.webhookFailuresPerMinute;
    const { allowed, resetMs } = failures.peek(failureKey(passage), limit);
    if (allowed) return;
    mark(passage, 'authentication', 'too_many_failures');
    throw tooMany('Too many deliveries from this address were not authentic', limit, resetMs);
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
    const noted = failures.take(failureKey(passage), LIMITS.webhookFailuresPerMinute);
    // Whoever counts may be gone; the sender is refused all the same.
    if (noted instanceof Promise) noted.catch(() => {});
    passage.refusal = JSON.stringify({ explanation: explain(passage, admitted, refusal) });
    logger.diagnostic(
      {
        domain: 'webhook',
        event: 'webhook.authentication_failed',
        level: 'warn',
        reasonCode: refusal.fault.toUpperCase(),
        message: `A delivery to ${describe(passage)} was refused: ${refusal.fault}`,
        outcome: 'refused',
        evidence: { webhookId, authType: admitted.target.webhook.auth.type, source: incoming.source },
      },
      { requestId: incoming.requestId, traceId: incoming.traceId, tenantId: namespaceId, pluginId },
    );
    return new PlatformError(
      'UNAUTHORIZED',
      'The delivery is not authentic: check the secret and how it is sent.',
    );
  }

  function conclude(passage: Passage, admitted: Admitted, verdict: SignatureVerdict): void {
    mark(passage, 'authentication', verdict.valid ? `ok (${verdict.secret})` : verdict.fault);
    if (!verdict.valid) throw refused(passage, admitted, verdict);
    if (verdict.secret === 'previous') secrets.notePreviousUse(keyOf(passage), admitted.keys!);
    passage.headers = authenticHeaders(passage.incoming, authHeaderOf(admitted.target), admitted.keys);
    passage.caller = { hostId: `webhook:${passage.pluginId}`, namespaceId: passage.namespaceId };
  }

  return {
    /** The passage has its body and gets its caller. Throws UNAUTHORIZED, RATE_LIMIT_EXCEEDED, HOST_UNAVAILABLE. */
    authenticate(passage: Passage, admitted: Admitted): MaybePromise<void> {
      limitFailures(passage);
      const { target, keys } = admitted;
      const asked = verifier.verify(target, passage.incoming.rawHeaders, passage.body!, keys, passage);
      return onceKnown(asked, (verdict) => conclude(passage, admitted, verdict));
    },
  };
}

function authHeaderOf({ webhook: { auth } }: Admitted['target']): string | undefined {
  return auth.type === 'secret' || auth.type === 'hmac' ? auth.header : undefined;
}

function keyOf({ namespaceId, pluginId, event, instanceId }: Passage) {
  return { namespaceId, pluginId, event, instanceId };
}

function failureKey({ incoming, namespaceId }: Passage): string {
  return `${incoming.source} ${namespaceId}`;
}
