import { spanIdOf } from '../../../../../kit/telemetry/trace.ts';
import type { NewDelivery } from '../../../../../store/ports/index.ts';

/**
 * Span id of the request that sent a delivery, derived from the delivery's id, so that later work in any
 * process can refer to it. Undefined for samples and replays.
 */
export function deliverySpan({
  origin,
  webhookId,
}: Pick<NewDelivery, 'origin' | 'webhookId'>): string | undefined {
  return origin === 'sender' ? spanIdOf(webhookId) : undefined;
}
