import { LIMITS } from '../../../../../contracts/index.ts';
import type { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { CreateLimiter } from '../../../../../kit/limits/rate-limiter.ts';
import { minutes } from '../../../../../kit/time/duration.ts';
import type { DeliveryContext } from '../receive/delivery-context.ts';
import { rateLimitError } from '../receive/rate-limit-error.ts';
import { senderNetwork } from '../receive/sender-network.ts';

/** Maximum number of addresses with their own budget. Further addresses share one budget. */
const MAX_ADDRESSES = 20_000;

/**
 * Limits invalid signatures, challenges and duplicate deliveries per address. Valid signatures are always accepted,
 * because a sender can share its address with other clients behind a proxy.
 */
export class SenderBudget {
  readonly #limiter: ReturnType<CreateLimiter>;

  constructor(createLimiter: CreateLimiter) {
    const options = { windowMs: minutes(1), maxKeys: MAX_ADDRESSES };
    this.#limiter = createLimiter('unauthenticated deliveries', options);
  }

  /** Returns the error for unauthenticated requests if the budget is exhausted, or undefined otherwise. */
  refusal(delivery: DeliveryContext): PlatformError | undefined {
    const limit = LIMITS.webhookFailuresPerMinute;
    const { allowed, resetMs } = this.#limiter.peek(keyOf(delivery), limit);
    if (allowed) return undefined;
    return rateLimitError('Too many deliveries from this address were not authentic', limit, resetMs);
  }

  charge(delivery: DeliveryContext): void {
    // The response does not depend on the result.
    void this.#limiter.take(keyOf(delivery), LIMITS.webhookFailuresPerMinute);
  }
}

/**
 * Returns the budget key. For provisioned webhooks, the key contains the namespace, so that failed deliveries for one
 * tenant do not affect another tenant.
 */
function keyOf({ incoming, namespaceId, isProvisioned }: DeliveryContext): string {
  return `${senderNetwork(incoming.source)} ${isProvisioned ? namespaceId : ''}`;
}
