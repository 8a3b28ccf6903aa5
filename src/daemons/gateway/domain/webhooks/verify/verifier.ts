import type { PlatformCode, WebhookRequest } from '../../../../../contracts/index.ts';
import type { MaybePromise } from '../../../../../kit/data/maybe-promise.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import {
  isAllowedAddress,
  type SignatureVerdict,
  TextCache,
  type VerificationKeys,
  verificationOf,
} from '../../../../../webhooks/schemes/index.ts';
import { wholeRequestOf } from '../receive/request-head.ts';
import type { DeclaredWebhook } from '../receive/targets.ts';
import { DeliveryRequest, type ReceivedRequest } from './delivery-request.ts';

/** Error codes of a validator that did not run. Such an error does not mean that the delivery is invalid. */
const NEVER_RAN: ReadonlySet<PlatformCode> = new Set(['HOST_UNAVAILABLE', 'SERVICE_UNAVAILABLE']);

/** Ids, source and URL of the request, for logs and for the validator's context. */
export interface VerificationContext {
  webhookId: string;
  namespaceId: string;
  instanceId: string;
  incoming: ReceivedRequest & { requestId: string; traceId: string };
  /** Returns the body as the webhook's format is parsed. */
  fields: () => unknown;
}

/**
 * Calls a plugin's validator with one secret. Only a result with `valid: true` accepts the delivery. Throws
 * HOST_UNAVAILABLE or SERVICE_UNAVAILABLE if the validator could not run.
 */
export type RunValidator = (
  target: DeclaredWebhook,
  validator: string,
  input: { headers: Record<string, string>; rawBody: string; secret: string },
  context: VerificationContext & { request: WebhookRequest },
) => Promise<unknown>;

export interface WebhookVerifier {
  verify(
    target: DeclaredWebhook,
    body: Buffer,
    keys: VerificationKeys | undefined,
    context: VerificationContext,
  ): MaybePromise<SignatureVerdict>;
}

export interface WebhookVerifierDeps {
  runValidator: RunValidator;
  publicUrl: string | null;
  clock: Clock;
  logger: Logger;
}

/** Creates the verifier for all types of `auth` (delivery step 6). @spec Webhook declaration: WebhookAuthConfig */
export function createWebhookVerifier({
  runValidator,
  publicUrl,
  clock,
  logger,
}: WebhookVerifierDeps): WebhookVerifier {
  const texts = new TextCache();

  async function isValid(...[target, validator, input, context]: Parameters<RunValidator>): Promise<boolean> {
    try {
      const verdict = await runValidator(target, validator, input, context);
      return (
        typeof verdict === 'object' && verdict !== null && (verdict as { valid?: unknown }).valid === true
      );
    } catch (error) {
      if (error instanceof PlatformError && NEVER_RAN.has(error.code)) throw error;
      const { webhookId, incoming } = context;
      const { requestId, traceId } = incoming;
      logger.warn(
        `The validator of ${target.plugin.id} ${target.webhook.event} failed; the delivery counts as not authentic`,
        {
          requestId,
          traceId,
          pluginId: target.plugin.id,
          error,
          meta: { webhookId },
        },
      );
      return false;
    }
  }

  async function askValidator(
    validator: string,
    ...[target, body, keys, context]: Parameters<WebhookVerifier['verify']>
  ): Promise<SignatureVerdict> {
    // Without a secret, every delivery is rejected before the validator runs. Otherwise, unauthenticated clients could
    // run plugin code.
    if (!keys) return { valid: false, fault: 'unprovisioned' };
    const request = wholeRequestOf(context.incoming.rawHeaders, context.incoming.url);
    const input = { headers: request.headers, rawBody: body.toString('base64') };
    for (const which of ['current', 'previous'] as const) {
      const key = keys[which];
      if (
        key &&
        (await isValid(target, validator, { ...input, secret: key.text }, { ...context, request }))
      ) {
        return { valid: true, secret: which };
      }
    }
    return { valid: false, fault: 'validator_refused' };
  }

  return {
    verify(target, body, keys, context) {
      const { auth } = target.webhook;
      if (auth.type === 'custom') {
        if (!isAllowedAddress(auth.ipAllow, context.incoming.source))
          return { valid: false, fault: 'address_not_allowed' };
        return askValidator(auth.validator, target, body, keys, context);
      }
      const request = new DeliveryRequest(context.incoming, body, publicUrl, context.fields);
      const verification = verificationOf(auth);
      if (context.incoming.origin !== 'sample' && !verification.allows(context.incoming.source))
        return { valid: false, fault: 'address_not_allowed' };
      return verification.verify(request, keys, clock.now(), texts);
    },
  };
}
