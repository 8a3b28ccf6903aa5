import { REPEATED, singleHeader } from '../../../../../kit/data/raw-headers.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import { contentTypeFault, contentTypeOf } from '../../../../../webhooks/bodies/content-type.ts';
import type { ReceiveRules } from '../../../../../webhooks/receive-rules.ts';
import type { DeliveryContext } from './delivery-context.ts';
import { mark } from './step-log.ts';

/** Throws UNSUPPORTED_MEDIA_TYPE for a content type that the webhook does not accept. Handshakes are not checked. */
export function requireContentType(context: DeliveryContext, { body, contentTypes }: ReceiveRules): void {
  if (contentTypes === undefined) return;
  const header = singleHeader(context.incoming.rawHeaders, 'content-type');
  const sent = header === REPEATED ? undefined : contentTypeOf(header);
  const fault = contentTypeFault(sent, contentTypes, body.format);
  if (fault === undefined) return;
  mark(context, 'body', 'content_type');
  throw new PlatformError('UNSUPPORTED_MEDIA_TYPE', fault, { details: { accepted: contentTypes } });
}
