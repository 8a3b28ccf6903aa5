import type { PlatformCode, WebhookRequest } from '../../../../../contracts/index.ts';
import type { MaybePromise } from '../../../../../kit/data/maybe-promise.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { wholeRequestOf } from '../receive/request-head.ts';
import type { DeclaredWebhook } from '../receive/targets.ts';
import { type SignatureVerdict, verifySharedSecret } from './signature.ts';
import type { VerificationKeys } from './verification-key.ts';

/** Error codes of a validator that did not run. Such an error does not mean that the delivery is invalid. */
const NEVER_RAN: ReadonlySet<PlatformCode> = new Set(['HOST_UNAVAILABLE', 'SERVICE_UNAVAILABLE']);

/** Ids, source and URL of the request, for logs and for the validator's context. */
export interface VerificationContext {
  webhookId: string;
  namespaceId: string;
  instanceId: string;
  incoming: { requestId: string; traceId: string; source: string; url: string };
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
    rawHeaders: readonly string[],
    body: Buffer,
    keys: VerificationKeys | undefined,
    context: VerificationContext,
  ): MaybePromise<SignatureVerdict>;
}

/** Creates the verifier for all types of `auth` (delivery step 6). @spec Webhook declaration: WebhookAuthConfig */
export function createWebhookVerifier(
  runValidator: RunValidator,
  clock: Clock,
  logger: Logger,
): WebhookVerifier {
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
    ...[target, rawHeaders, body, keys, context]: Parameters<WebhookVerifier['verify']>
  ): Promise<SignatureVerdict> {
    // Without a secret, every delivery is rejected before the validator runs. Otherwise, unauthenticated clients could
    // run plugin code.
    if (!keys) return { valid: false, fault: 'unprovisioned' };
    const request = wholeRequestOf(rawHeaders, context.incoming.url);
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
    verify(target, rawHeaders, body, keys, context) {
      const { auth } = target.webhook;
      return auth.type === 'custom'
        ? askValidator(auth.validator, target, rawHeaders, body, keys, context)
        : verifySharedSecret(auth, rawHeaders, body, keys, clock.now());
    },
  };
}
