import { HEADERS, NamespaceId, type WebhookHandlerDecl } from '../../../../../contracts/index.ts';
import { createBoundedCache } from '../../../../../kit/data/bounded-cache.ts';
import { type MaybePromise, onceKnown } from '../../../../../kit/data/maybe-promise.ts';
import { REPEATED, singleHeader } from '../../../../../kit/data/raw-headers.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { CreateLimiter, RateVerdict, SharedLimiter } from '../../../../../kit/limits/rate-limiter.ts';
import { minutes } from '../../../../../kit/time/duration.ts';
import type { WebhookSecrets } from '../verify/secrets.ts';
import type { VerificationKeys } from '../verify/verification-key.ts';
import type { DeliveryContext, IncomingDelivery } from './delivery-context.ts';
import { endpointName } from './endpoint-name.ts';
import { rateLimitError } from './rate-limit-error.ts';
import { senderNetwork } from './sender-network.ts';
import { mark, step } from './step-log.ts';
import type { DeclaredWebhook, WebhookTargets } from './targets.ts';

export interface AdmissionDeps {
  targets: WebhookTargets;
  secrets: WebhookSecrets;
  createLimiter: CreateLimiter;
}

export interface Admitted {
  target: DeclaredWebhook;
  keys: VerificationKeys | undefined;
}

/** Maximum number of valid namespace names in the cache. */
const REMEMBERED = 1000;
/**
 * Maximum number of rate-limit keys for webhooks without a secret. A key consists of webhook and client address.
 * Further addresses share one key.
 */
const MAX_UNPROVISIONED = 20_000;

/** Runs steps 1 to 3, which need only the request line and the headers. @spec Webhook delivery */
export class Admission {
  readonly #targets: WebhookTargets;
  readonly #secrets: WebhookSecrets;
  readonly #permits: SharedLimiter;
  readonly #unprovisioned: SharedLimiter;
  /** Cache of valid namespace names. The cache is bounded, because clients can invent names. */
  readonly #namespaces = createBoundedCache<true>(REMEMBERED);

  constructor({ targets, secrets, createLimiter }: AdmissionDeps) {
    this.#targets = targets;
    this.#secrets = secrets;
    this.#permits = createLimiter('webhook deliveries', { windowMs: minutes(1) });
    this.#unprovisioned = createLimiter('deliveries without a secret', {
      windowMs: minutes(1),
      maxKeys: MAX_UNPROVISIONED,
    });
  }

  /**
   * Checks the route, namespace and rate limit of a delivery. Throws PLUGIN_NOT_FOUND, WEBHOOK_NOT_FOUND,
   * NAMESPACE_REQUIRED, VALIDATION_ERROR or RATE_LIMIT_EXCEEDED.
   */
  admit(context: DeliveryContext): MaybePromise<Admitted> {
    const { pluginId, event, instanceId, toSource } = context.incoming;
    if (toSource) return this.#admitToSource(context, toSource);
    const target = step(context, 'route', () => this.#targets.require(pluginId, event, instanceId));
    return this.#admitTo(context, target);
  }

  /**
   * Takes a rate-limit permit for an authentic delivery. Throws RATE_LIMIT_EXCEEDED if concurrent deliveries have taken
   * the last permit.
   */
  takePermit(context: DeliveryContext, { rateLimit }: WebhookHandlerDecl): MaybePromise<void> {
    const { requestsPerMinute } = rateLimit;
    const taken = this.#permits.take(endpointName(context), requestsPerMinute);
    // Step 3 is already in the step log, so a success is not logged again.
    if (!(taken instanceof Promise) && taken.allowed) return undefined;
    return this.#judged(context, taken, requestsPerMinute);
  }

  /** Releases the rate-limit permit of a duplicate delivery. */
  givePermitBack(context: DeliveryContext): void {
    this.#permits.giveBack(endpointName(context));
  }

  async #admitToSource(
    context: DeliveryContext,
    { find }: NonNullable<IncomingDelivery['toSource']>,
  ): Promise<Admitted> {
    const found = await Promise.allSettled([find()]);
    const target = step(context, 'route', () => {
      if (found[0].status === 'rejected') throw found[0].reason;
      return found[0].value;
    });
    return this.#admitTo(context, target);
  }

  #admitTo(context: DeliveryContext, target: DeclaredWebhook): MaybePromise<Admitted> {
    return onceKnown(this.#findNamespace(context), (keys) => {
      context.isProvisioned = keys !== undefined;
      return onceKnown(this.#limit(context, target.webhook), () => ({ target, keys }));
    });
  }

  #isNamespace(text: string): boolean {
    if (this.#namespaces.get(text)) return true;
    const isValid = NamespaceId.safeParse(text).success;
    if (isValid) this.#namespaces.set(text, true);
    return isValid;
  }

  /**
   * Determines the namespace (step 2) and reads the webhook's secret. The record of the secret defines whether the URL
   * can contain the namespace.
   */
  #findNamespace(context: DeliveryContext): MaybePromise<VerificationKeys | undefined> {
    const { rawHeaders, namespaceInUrl, toSource } = context.incoming;
    // An empty header counts as missing. The URL of a source always names the namespace.
    const sent = toSource ? undefined : singleHeader(rawHeaders, HEADERS.namespace) || undefined;
    const named = sent ?? namespaceInUrl;
    const isNamed = typeof named === 'string' && this.#isNamespace(named);
    if (sent !== undefined && !isNamed) {
      mark(context, 'namespace', 'invalid');
      throw new PlatformError('VALIDATION_ERROR', `The ${HEADERS.namespace} header ${faultOf(sent)}.`);
    }
    context.namespaceId = isNamed ? named : '';
    return onceKnown(isNamed ? this.#secrets.find(context) : undefined, (keys) => {
      if (!isNamed || (sent === undefined && !toSource && !keys?.namespaceInUrl)) {
        context.namespaceId = '';
        mark(context, 'namespace', 'missing');
        throw new PlatformError(
          'NAMESPACE_REQUIRED',
          `Send the namespace in the ${HEADERS.namespace} header.`,
        );
      }
      mark(context, 'namespace', 'ok');
      return keys;
    });
  }

  /**
   * Checks the rate limit (step 3). If the webhook has a secret, the permit is taken only after authentication.
   * Unauthenticated clients therefore cannot exhaust the limit.
   */
  #limit(context: DeliveryContext, webhook: WebhookHandlerDecl): MaybePromise<void> {
    const { requestsPerMinute } = webhook.rateLimit;
    const verdict = context.isProvisioned
      ? this.#permits.peek(endpointName(context), requestsPerMinute)
      : this.#unprovisioned.take(unprovisionedKey(context), requestsPerMinute);
    return this.#judged(context, verdict, requestsPerMinute);
  }

  #judged(
    context: DeliveryContext,
    taken: MaybePromise<RateVerdict>,
    requestsPerMinute: number,
  ): MaybePromise<void> {
    const judge = (verdict: RateVerdict): void =>
      step(context, 'rate_limit', () => requirePermit(verdict, requestsPerMinute));
    if (!(taken instanceof Promise)) return judge(taken);
    return taken.then(judge, (error) =>
      step(context, 'rate_limit', () => {
        throw error;
      }),
    );
  }
}

/**
 * Returns the rate-limit key of a webhook without a secret. The key omits the namespace. Otherwise, clients could evade
 * the limit with invented namespaces.
 */
function unprovisionedKey({ incoming, pluginId, event }: DeliveryContext): string {
  const shared = { namespaceId: '', pluginId, event, instanceId: '' };
  return `${endpointName(shared)} ${senderNetwork(incoming.source)}`;
}

function requirePermit({ allowed, resetMs }: RateVerdict, requestsPerMinute: number): void {
  if (allowed) return;
  throw rateLimitError(
    `This webhook accepts ${requestsPerMinute} deliveries per minute`,
    requestsPerMinute,
    resetMs,
  );
}

function faultOf(sent: string | typeof REPEATED): string | undefined {
  if (sent === REPEATED) return 'must be sent once';
  return NamespaceId.safeParse(sent).error?.issues[0]?.message;
}
