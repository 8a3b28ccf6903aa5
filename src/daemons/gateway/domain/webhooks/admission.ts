import { HEADERS, NamespaceId, type WebhookHandlerDecl } from '../../../../contracts/index.ts';
import { createBoundedCache } from '../../../../kit/bounded-cache.ts';
import { minutes } from '../../../../kit/duration.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import { type MaybePromise, onceKnown } from '../../../../kit/maybe-promise.ts';
import type { CreateLimiter, RateVerdict } from '../../../../kit/rate-limiter.ts';
import { REPEATED, singleHeader } from '../raw-headers.ts';
import { endpointName } from './endpoint-name.ts';
import { tooMany } from './limits.ts';
import type { Passage } from './passage.ts';
import type { VerificationKeys, WebhookSecrets } from './secrets.ts';
import { senderNetwork } from './sender-network.ts';
import { mark, step } from './steps.ts';
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

/** Maximum cached valid namespaces. */
const REMEMBERED = 1000;
/** Addresses and webhooks of unprovisioned namespaces with a separate limit; any further ones share one. */
const MAX_UNPROVISIONED = 20_000;

/** Steps 1 to 3, which read only the request line and the headers. @spec Webhook delivery */
export function createAdmission({ targets, secrets, createLimiter }: AdmissionDeps) {
  const permits = createLimiter('webhook deliveries', { windowMs: minutes(1) });
  const unprovisioned = createLimiter('deliveries without a secret', {
    windowMs: minutes(1),
    maxKeys: MAX_UNPROVISIONED,
  });
  /** A bounded cache: invented names evict each other. */
  const namespaces = createBoundedCache<true>(REMEMBERED);

  function isNamespace(text: string): boolean {
    if (namespaces.get(text)) return true;
    const isValid = NamespaceId.safeParse(text).success;
    if (isValid) namespaces.set(text, true);
    return isValid;
  }

  /** Step 2. Reads the secret's record, which says whether the URL may name the namespace. */
  function findNamespace(passage: Passage): MaybePromise<VerificationKeys | undefined> {
    const { rawHeaders, namespaceInUrl } = passage.incoming;
    // An empty header counts as missing.
    const sent = singleHeader(rawHeaders, HEADERS.namespace) || undefined;
    const named = sent ?? namespaceInUrl;
    const isNamed = typeof named === 'string' && isNamespace(named);
    if (sent !== undefined && !isNamed) {
      mark(passage, 'namespace', 'invalid');
      throw new PlatformError('VALIDATION_ERROR', `The ${HEADERS.namespace} header ${faultOf(sent)}.`);
    }
    passage.namespaceId = isNamed ? named : '';
    return onceKnown(isNamed ? secrets.find(passage) : undefined, (keys) => {
      if (!isNamed || (sent === undefined && !keys?.namespaceInUrl)) {
        passage.namespaceId = '';
        mark(passage, 'namespace', 'missing');
        throw new PlatformError(
          'NAMESPACE_REQUIRED',
          `Send the namespace in the ${HEADERS.namespace} header.`,
        );
      }
      mark(passage, 'namespace', 'ok');
      return keys;
    });
  }

  /**
   * Step 3. For a provisioned endpoint only checks the limit; the permit is taken after authentication, so
   * that others cannot use it up. Namespaces without a secret have a limit per webhook and address.
   */
  function limit(passage: Passage, webhook: WebhookHandlerDecl): MaybePromise<void> {
    const { requestsPerMinute } = webhook.rateLimit;
    const verdict = passage.isProvisioned
      ? permits.peek(endpointName(passage), requestsPerMinute)
      : unprovisioned.take(unprovisionedKey(passage), requestsPerMinute);
    return judged(passage, verdict, requestsPerMinute);
  }

  function judged(
    passage: Passage,
    taken: MaybePromise<RateVerdict>,
    requestsPerMinute: number,
  ): MaybePromise<void> {
    const judge = (verdict: RateVerdict): void =>
      step(passage, 'rate_limit', () => requireRoom(verdict, requestsPerMinute));
    if (!(taken instanceof Promise)) return judge(taken);
    return taken.then(judge, (error) =>
      step(passage, 'rate_limit', () => {
        throw error;
      }),
    );
  }

  return {
    /**
     * Throws PLUGIN_NOT_FOUND, WEBHOOK_NOT_FOUND, NAMESPACE_REQUIRED, VALIDATION_ERROR, RATE_LIMIT_EXCEEDED.
     */
    admit(passage: Passage): MaybePromise<Admitted> {
      const { pluginId, event, instanceId } = passage.incoming;
      const target = step(passage, 'route', () => targets.require(pluginId, event, instanceId));
      return onceKnown(findNamespace(passage), (keys) => {
        passage.isProvisioned = keys !== undefined;
        return onceKnown(limit(passage, target.webhook), () => ({ target, keys }));
      });
    },

    /**
     * Takes a permit for an authentic delivery. Throws RATE_LIMIT_EXCEEDED when concurrent deliveries took
     * the last ones.
     */
    takePermit(passage: Passage, { rateLimit }: WebhookHandlerDecl): MaybePromise<void> {
      const { requestsPerMinute } = rateLimit;
      const taken = permits.take(endpointName(passage), requestsPerMinute);
      // Step 3 is already in the record.
      if (!(taken instanceof Promise) && taken.allowed) return undefined;
      return judged(passage, taken, requestsPerMinute);
    },
    /** For a delivery that turned out to be a duplicate. */
    givePermitBack: (passage: Passage): void => permits.giveBack(endpointName(passage)),
  };
}

/** Without the namespace, so that invented names use no memory and gain no attempts. */
function unprovisionedKey({ incoming, pluginId, event }: Passage): string {
  const anybody = { namespaceId: '', pluginId, event, instanceId: '' };
  return `${endpointName(anybody)} ${senderNetwork(incoming.source)}`;
}

function requireRoom({ allowed, resetMs }: RateVerdict, requestsPerMinute: number): void {
  if (allowed) return;
  throw tooMany(
    `This webhook accepts ${requestsPerMinute} deliveries per minute`,
    requestsPerMinute,
    resetMs,
  );
}

function faultOf(sent: string | typeof REPEATED): string | undefined {
  if (sent === REPEATED) return 'must be sent once';
  return NamespaceId.safeParse(sent).error?.issues[0]?.message;
}
