import { LIMITS } from '../../../../contracts/index.ts';
import { minutes } from '../../../../kit/duration.ts';
import type { PlatformError } from '../../../../kit/errors.ts';
import type { CreateLimiter } from '../../../../kit/rate-limiter.ts';
import { tooMany } from './limits.ts';
import type { Passage } from './passage.ts';
import { senderNetwork } from './sender-network.ts';

/** Addresses counted apart at a time; further ones share one budget. */
const MAX_ADDRESSES = 20_000;

/**
 * What one address may send in a minute without proving itself: refused signatures, challenges and known delivery ids. It
 * decides how such a request is answered, never whether a signature is checked: behind a proxy that is not in
 * `trustedProxies` genuine senders and unauthenticated clients have one address.
 */
export class SenderBudget {
  readonly #limiter: ReturnType<CreateLimiter>;

  constructor(createLimiter: CreateLimiter) {
    const options = { windowMs: minutes(1), exact: true, maxKeys: MAX_ADDRESSES };
    this.#limiter = createLimiter('unauthenticated deliveries', options);
  }

  /** The refusal of a request that proves nothing, once the budget is used up. */
  refusal(delivery: Passage): PlatformError | undefined {
    const limit = LIMITS.webhookFailuresPerMinute;
    const { allowed, resetMs } = this.#limiter.peek(keyOf(delivery), limit);
    if (allowed) return undefined;
    return tooMany('Too many deliveries from this address were not authentic', limit, resetMs);
  }

  charge(delivery: Passage): void {
    const taken = this.#limiter.take(keyOf(delivery), LIMITS.webhookFailuresPerMinute);
    // The process that counts may be gone; the answer does not depend on it.
    if (taken instanceof Promise) taken.catch(() => {});
  }
}

/** Apart by namespace, so that the refusals of one tenant's sender show to that tenant alone. */
function keyOf({ incoming, namespaceId, isProvisioned }: Passage): string {
  return `${senderNetwork(incoming.source)} ${isProvisioned ? namespaceId : ''}`;
}
