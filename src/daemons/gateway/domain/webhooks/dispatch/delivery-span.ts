import { spanIdOf } from '../../../../../kit/telemetry/trace.ts';
import type { NewDelivery } from '../../../../../store/ports/index.ts';

/**
 * Returns the span id of the request that sent a delivery, or undefined for samples and replays. The id is derived from
 * the webhook id, so that all processes can link spans to the request.
 */
export function deliverySpan({
  origin,
  webhookId,
}: Pick<NewDelivery, 'origin' | 'webhookId'>): string | undefined {
  return origin === 'sender' ? spanIdOf(webhookId) : undefined;
}
