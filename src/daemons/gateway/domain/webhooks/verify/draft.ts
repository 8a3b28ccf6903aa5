import type { Draft } from '../../../../../webhooks/schemes/index.ts';
import { DeliveryRequest, senderUrl } from './delivery-request.ts';

/** Returns a delivery to be signed. Its URL is only known for samples. */
export function draftOf({
  rawHeaders,
  body,
  nowMs,
  id,
  target = '/',
  publicUrl = null,
}: {
  rawHeaders: readonly string[];
  body: Buffer;
  nowMs: number;
  id: string;
  target?: string;
  publicUrl?: string | null;
}): Draft {
  const received = { method: 'POST', url: target, rawHeaders, source: '127.0.0.1' };
  const request = new DeliveryRequest(received, body, publicUrl);
  return {
    ...{
      method: 'POST',
      url: senderUrl(received, publicUrl),
      target,
      rawHeaders,
      body,
      source: received.source,
    },
    ...{ nowMs, id },
    fields: () => request.fields(),
  };
}
