import { PlatformError } from '../../../../../kit/errors/errors.ts';
import { FORMAT_NAMES } from '../../../../../webhooks/bodies/parse-body.ts';
import type { ParsedPayload } from '../../../../../webhooks/bodies/parsed-body.ts';
import { isGuardedBody } from '../../../../../webhooks/handshakes/hmac-guard.ts';
import type { ReceiveRules } from '../../../../../webhooks/receive-rules.ts';
import type { DeliveryContext } from './delivery-context.ts';
import { bodyFormatOf, type ParsedBody } from './payload.ts';

/** Returns the parsed body. Throws VALIDATION_ERROR with the fault of a body that is not in the webhook's format. */
export function requireParsed(
  context: DeliveryContext,
  parsed: ParsedBody,
  rules: ReceiveRules,
): ParsedPayload {
  if (parsed.fault !== undefined) {
    const format = bodyFormatOf(rules, context.incoming.rawHeaders);
    throw new PlatformError(
      'VALIDATION_ERROR',
      `The body is not valid ${FORMAT_NAMES[format]}: ${parsed.fault}.`,
    );
  }
  if (rules.requiresObject && !isGuardedBody(parsed.value))
    throw new PlatformError('VALIDATION_ERROR', 'The body must be a JSON object or array.');
  return parsed;
}
