import { type MaybePromise, onceKnown } from '../../../../../kit/data/maybe-promise.ts';
import { codeOf, PlatformError } from '../../../../../kit/errors/errors.ts';
import {
  type CreateLimiter,
  createRateLimiter,
  type RateLimiter,
} from '../../../../../kit/limits/rate-limiter.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { minutes } from '../../../../../kit/time/duration.ts';
import { type SignatureVerdict, verificationOf } from '../../../../../webhooks/schemes/index.ts';
import type { Admitted } from '../receive/admission.ts';
import type { DeliveryContext } from '../receive/delivery-context.ts';
import { describeEndpoint, endpointName } from '../receive/endpoint-name.ts';
import { authenticHeaders } from '../receive/request-head.ts';
import { senderNetwork } from '../receive/sender-network.ts';
import { mark } from '../receive/step-log.ts';
import { DeliveryRequest, senderUrl } from './delivery-request.ts';
import { explainRefusal } from './explanation.ts';
import { FairSemaphore } from './fair-semaphore.ts';
import { proofPlacesOf } from './proof-places.ts';
import { HINTS } from './refusal-hints.ts';
import type { WebhookSecrets } from './secrets.ts';
import { SenderBudget } from './sender-budget.ts';
import type { WebhookVerifier } from './verifier.ts';

export interface AuthenticationDeps {
  verifier: WebhookVerifier;
  secrets: WebhookSecrets;
  publicUrl: string | null;
  createLimiter: CreateLimiter;
  clock: Clock;
  logger: Logger;
}

type Refusal = Extract<SignatureVerdict, { valid: false }>;

const EXPLANATIONS_PER_MINUTE = 300;
/**
 * Maximum concurrent and waiting validator calls per endpoint. The limits apply to addresses that have exhausted their
 * budget of unauthenticated requests. Addresses are served round robin.
 */
const MAX_UNTRUSTED_CALLS = 2;
const MAX_UNTRUSTED_WAITING = 100;

/**
 * Authenticates the sender (step 6). The reason for a failure is shown only to operators, not to the sender. @spec
 * Webhook delivery step 6
 */
export class Authentication {
  readonly #deps: AuthenticationDeps;
  readonly #budget: SenderBudget;
  readonly #untrustedCalls = new FairSemaphore({
    concurrency: MAX_UNTRUSTED_CALLS,
    maxWaiting: MAX_UNTRUSTED_WAITING,
  });
  /**
   * Rate limit for explanations. The limit applies per process, because an explanation costs CPU time of the process.
   */
  readonly #explanations: RateLimiter;

  constructor(deps: AuthenticationDeps) {
    this.#deps = deps;
    this.#budget = new SenderBudget(deps.createLimiter);
    this.#explanations = createRateLimiter(deps.clock, minutes(1));
  }

  /**
   * Authenticates the sender and sets `context.caller`. Requires `context.body`. Throws UNAUTHORIZED,
   * RATE_LIMIT_EXCEEDED or HOST_UNAVAILABLE.
   */
  authenticate(context: DeliveryContext, admitted: Admitted): MaybePromise<void> {
    return onceKnown(this.#charged(context, admitted), (verdict) => {
      if (!verdict.valid) throw this.#refused(context, admitted, verdict);
      this.#proven(context, admitted, verdict.secret);
    });
  }

  /**
   * Allows challenges and duplicate deliveries without authentication until the address's budget is exhausted. With
   * `tries`, the request is always verified, so that the record contains the result.
   */
  allowUnauthenticated(
    context: DeliveryContext,
    admitted: Admitted,
    { tries }: { tries: boolean },
  ): MaybePromise<void> {
    const exhausted = this.#budget.refusal(context);
    this.#budget.charge(context);
    if (!exhausted && !tries) return undefined;
    const verified = this.#verify(context, admitted);
    return onceKnown(exhausted ? verified : undecidedAs(context, verified), (verdict) => {
      if (!verdict) return;
      if (verdict.valid) return this.#proven(context, admitted, verdict.secret);
      mark(context, 'authentication', exhausted ? 'too_many_failures' : verdict.fault);
      if (exhausted) throw exhausted;
    });
  }

  /**
   * Verifies the request. Charges the budget for a built-in check that could not run, because the request names the
   * certificate that the check downloads.
   */
  #charged(context: DeliveryContext, admitted: Admitted): MaybePromise<SignatureVerdict> {
    const verified = this.#verify(context, admitted);
    if (!(verified instanceof Promise) || !mayDownload(admitted)) return verified;
    return verified.catch((error) => {
      this.#budget.charge(context);
      throw error;
    });
  }

  /**
   * Verifies the request. Limits the concurrency of checks that run plugin code or download a file if the address's
   * budget is exhausted.
   */
  #verify(context: DeliveryContext, { target, keys }: Admitted): MaybePromise<SignatureVerdict> {
    const run = () => this.#deps.verifier.verify(target, context.body!, keys, context);
    const isCostly = target.webhook.auth.type === 'custom' || mayDownload({ target });
    const refusal = isCostly && keys ? this.#budget.refusal(context) : undefined;
    return refusal
      ? this.#untrustedCalls.run(
          { key: endpointName(context), source: senderNetwork(context.incoming.source) },
          async () => run(),
          () => refusal,
        )
      : run();
  }

  /**
   * Returns the likely cause of a failed authentication. Returns null above the rate limit, which exists because an
   * explanation costs CPU time.
   */
  #explain({ incoming, body, fields }: DeliveryContext, { target, keys }: Admitted, refusal: Refusal) {
    const { auth } = target.webhook;
    if (auth.type === 'custom' && refusal.fault === 'validator_refused')
      return { reason: refusal.fault, hint: "The plugin's validator rejected it; see its log." };
    if (!this.#explanations.take('', EXPLANATIONS_PER_MINUTE).allowed) return null;
    if (auth.type === 'custom')
      return { reason: refusal.fault, hint: HINTS[refusal.fault as keyof typeof HINTS] };
    const request = new DeliveryRequest(incoming, body!, this.#deps.publicUrl, fields);
    const directUrl = senderUrl(incoming, null);
    return explainRefusal({ auth, ...refusal, request, directUrl, keys, nowMs: this.#deps.clock.now() });
  }

  #refused(context: DeliveryContext, admitted: Admitted, refusal: Refusal): PlatformError {
    const { incoming, namespaceId, pluginId, webhookId } = context;
    const exhausted = this.#budget.refusal(context);
    if (exhausted) {
      mark(context, 'authentication', 'too_many_failures');
      return exhausted;
    }
    mark(context, 'authentication', refusal.fault);
    this.#budget.charge(context);
    context.refusal = JSON.stringify({ explanation: this.#explain(context, admitted, refusal) });
    this.#deps.logger.diagnostic(
      {
        domain: 'webhook',
        event: 'webhook.authentication_failed',
        level: 'warn',
        reasonCode: refusal.fault.toUpperCase(),
        message: `A delivery to ${describeEndpoint(context)} was refused: ${refusal.fault}`,
        outcome: 'refused',
        evidence: {
          ...{ webhookId, namespaceId, source: incoming.source },
          authType: admitted.target.webhook.auth.type,
        },
      },
      // Logged without a namespace. Unauthenticated clients choose the namespace and could otherwise write to the log
      // of any tenant.
      { requestId: incoming.requestId, traceId: incoming.traceId, pluginId },
    );
    return new PlatformError(
      'UNAUTHORIZED',
      'The delivery is not authentic: check the secret and how it is sent.',
    );
  }

  #proven(context: DeliveryContext, { target, keys }: Admitted, secret: 'current' | 'previous'): void {
    mark(context, 'authentication', `ok (${secret})`);
    if (secret === 'previous') this.#deps.secrets.notePreviousUse(keyOf(context), keys!);
    context.headers = authenticHeaders(context.incoming, proofPlacesOf(target), keys);
    context.caller = { hostId: `webhook:${context.pluginId}`, namespaceId: context.namespaceId };
  }
}

/** Returns the verdict. If the validator call fails, resolves with undefined and adds the reason to the step log. */
function undecidedAs(
  context: DeliveryContext,
  verified: MaybePromise<SignatureVerdict>,
): MaybePromise<SignatureVerdict | undefined> {
  if (!(verified instanceof Promise)) return verified;
  return verified.catch((error) => {
    mark(context, 'authentication', codeOf(error) ?? 'failed');
    return undefined;
  });
}

/** Returns whether the check downloads a file that the request names. */
function mayDownload({ target: { webhook } }: Pick<Admitted, 'target'>): boolean {
  const { auth } = webhook;
  return auth.type === 'provider' && verificationOf(auth).mayDownload;
}

function keyOf({ namespaceId, pluginId, event, instanceId }: DeliveryContext) {
  return { namespaceId, pluginId, event, instanceId };
}
