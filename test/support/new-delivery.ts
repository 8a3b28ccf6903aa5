import { systemRandom } from '../../src/kit/security/random.ts';
import { systemClock } from '../../src/kit/time/clock.ts';
import type { DeliveryEnd, NewDelivery } from '../../src/store/ports/index.ts';

const random = systemRandom();

export const SUCCEEDED: DeliveryEnd = {
  status: 'succeeded',
  httpStatus: 202,
  steps: '',
  outcome: null,
  durationMs: 1,
};

/** An async delivery without a body, as a gateway hands it to its store. */
export function delivery(more: Partial<NewDelivery> = {}): NewDelivery {
  return {
    webhookId: random.uuid(),
    namespaceId: 'acme',
    pluginId: 'p',
    event: 'e',
    instanceId: '',
    receivedAt: systemClock.now(),
    source: '::1',
    requestId: 'r',
    traceId: 't',
    headers: '[]',
    body: null,
    bodyBytes: more.body?.byteLength ?? 0,
    mode: 'async',
    origin: 'sender',
    replayOf: null,
    orderKey: null,
    ...more,
  };
}
