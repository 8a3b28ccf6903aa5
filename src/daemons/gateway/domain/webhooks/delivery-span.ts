import { spanIdOf } from '../../../../kit/trace.ts';
import type { NewDelivery } from '../../../../store/ports/index.ts';

/**
 * The span of the request that brought a delivery, for what is done about it later, in whichever process and after any
 * restart: it is made of the delivery's id. Samples and replays were brought by none.
 */
export function deliverySpan({
  origin,
  webhookId,
}: Pick<NewDelivery, 'origin' | 'webhookId'>): string | undefined {
  return origin === 'sender' ? spanIdOf(webhookId) : undefined;
}
