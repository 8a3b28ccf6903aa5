import { emitRunMessage } from '../../contracts/index.ts';
import { createClient } from '../../http/index.ts';
import type { Resources } from '../define-daemon.ts';
import { callOptions } from '../plugin-runtime/access/call-options.ts';
import { SEND_TIMEOUT_MS, type SendRunMessage } from './domain/ends/end-handlers.ts';

/** Returns the function that sends messages of ended runs by calls to the gateway, which stores them. */
export function createRunMessages({ peers, keys }: Pick<Resources, 'peers' | 'keys'>): SendRunMessage {
  const client = createClient({
    ...{ url: () => peers.urlOf('gateway'), peer: 'gateway' },
    timeoutMs: SEND_TIMEOUT_MS,
  });
  const options = callOptions(keys);
  return ({ tenantId, hostId, requestId, traceId, deliveryId }, message, signal) =>
    client.call(
      emitRunMessage,
      { body: message },
      options({
        ...{ tenantId, requestId, traceId, signal },
        user: { hostId, namespaceId: tenantId },
        deliveryId: deliveryId ?? undefined,
      }),
    );
}
