import type { MaybePromise } from '../../../../../kit/data/maybe-promise.ts';
import { REPEATED, singleHeader } from '../../../../../kit/data/raw-headers.ts';
import { codeOf, PlatformError } from '../../../../../kit/errors/errors.ts';
import type { DeliveryContext } from './delivery-context.ts';
import { mark } from './step-log.ts';

/**
 * Reads the body and keeps it in the context. Throws UNSUPPORTED_MEDIA_TYPE for an encoded body, and PAYLOAD_TOO_LARGE.
 */
export function readWholeBody(context: DeliveryContext, maxBodyBytes: number): MaybePromise<Buffer> {
  const encoding = singleHeader(context.incoming.rawHeaders, 'content-encoding');
  if (encoding && (encoding === REPEATED || encoding.toLowerCase() !== 'identity')) {
    mark(context, 'body', 'encoded');
    throw new PlatformError(
      'UNSUPPORTED_MEDIA_TYPE',
      'Send the body without Content-Encoding: the signature covers the unencoded bytes.',
    );
  }
  const keep = (body: Buffer): Buffer => {
    mark(context, 'body', 'ok');
    context.body = body;
    return body;
  };
  const fail = (error: unknown): never => {
    mark(context, 'body', codeOf(error) ?? 'failed');
    throw error;
  };
  try {
    const body = context.incoming.readBody(maxBodyBytes);
    return body instanceof Promise ? body.then(keep, fail) : keep(body);
  } catch (error) {
    return fail(error);
  }
}
