import { LIMITS } from '../../../../../contracts/index.ts';
import type { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { CreateLimiter } from '../../../../../kit/limits/rate-limiter.ts';
import { minutes } from '../../../../../kit/time/duration.ts';
import type { DeliveryContext } from '../receive/delivery-context.ts';
import { tooMany } from '../receive/limits.ts';
import { senderNetwork } from '../receive/sender-network.ts';

/** Addresses with a separate budget; any further ones share one. */
const MAX_ADDRESSES = 20_000;

/**
 * Limits unauthenticated requests per address: bad signatures, challenges and known delivery ids. It affects
 * only their response; signatures are always checked, since genuine senders may share an address behind an
 * untrusted proxy.
 */
export class SenderBudget {
  readonly #limiter: ReturnType<CreateLimiter>;

  constructor(createLimiter: CreateLimiter) {
    const options = { windowMs: minutes(1), exact: true, maxKeys: MAX_ADDRESSES };
    this.#limiter = createLimiter('unauthenticated deliveries', options);
  }

  /** The error for an unauthenticated request once the budget is used up. */
  refusal(delivery: DeliveryContext): PlatformError | undefined {
    const limit = LIMITS.webhookFailuresPerMinute;
    const { allowed, resetMs } = this.#limiter.peek(keyOf(delivery), limit);
    if (allowed) return undefined;
    return tooMany('Too many deliveries from this address were not authentic', limit, resetMs);
  }

  charge(delivery: DeliveryContext): void {
    const taken = this.#limiter.take(keyOf(delivery), LIMITS.webhookFailuresPerMinute);
    // The primary process may be down; the response does not depend on it.
    if (taken instanceof Promise) taken.catch(() => {});
  }
}

/** Separate by namespace, so that failures of one tenant's sender affect that tenant only. */
function keyOf({ incoming, namespaceId, isProvisioned }: DeliveryContext): string {
  return `${senderNetwork(incoming.source)} ${isProvisioned ? namespaceId : ''}`;
}
