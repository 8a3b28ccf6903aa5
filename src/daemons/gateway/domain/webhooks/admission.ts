import { HEADERS, NamespaceId, type WebhookHandlerDecl } from '../../../../contracts/index.ts';
import { createBoundedCache } from '../../../../kit/bounded-cache.ts';
import { minutes } from '../../../../kit/duration.ts';
import { codeOf, PlatformError } from '../../../../kit/errors.ts';
import type { CreateLimiter, RateVerdict } from '../../../../kit/rate-limiter.ts';
import { REPEATED, singleHeader } from '../raw-headers.ts';
import { tooMany } from './limits.ts';
import type { Passage } from './passage.ts';
import type { VerificationKeys, WebhookSecrets } from './secrets.ts';
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

/** Namespaces of which it is remembered that they are well-formed. */
const REMEMBERED = 1000;

/** Steps 1 to 3, which look at the request line and the headers alone. @spec Webhook delivery */
export function createAdmission({ targets, secrets, createLimiter }: AdmissionDeps) {
  const limiter = createLimiter('webhook deliveries', { windowMs: minutes(1) });
  /** Names are few and come again and again; a stranger's made-up ones push each other out. */
  const namespaces = createBoundedCache<true>(REMEMBERED);

  function isNamespace(text: string): boolean {
    if (namespaces.get(text)) return true;
    const isValid = NamespaceId.safeParse(text).success;
    if (isValid) namespaces.set(text, true);
    return isValid;
  }

  /** Step 2. The secret's record tells whether the URL may name the namespace, so it is read here. */
  async function findNamespace(passage: Passage): Promise<VerificationKeys | undefined> {
    const { rawHeaders, namespaceInUrl } = passage.incoming;
    // An empty one names nothing: it is missing.
    const sent = singleHeader(rawHeaders, HEADERS.namespace) || undefined;
    const named = sent ?? namespaceInUrl;
    const isNamed = typeof named === 'string' && isNamespace(named);
    if (sent !== undefined && !isNamed) {
      mark(passage, 'namespace', 'invalid');
      throw new PlatformError('VALIDATION_ERROR', `The ${HEADERS.namespace} header ${faultOf(sent)}.`);
    }
    passage.namespaceId = isNamed ? named : '';
    const found = isNamed ? secrets.find(passage) : undefined;
    const keys = found instanceof Promise ? await found : found;
    if (!isNamed || (sent === undefined && !keys?.namespaceInUrl)) {
      passage.namespaceId = '';
      mark(passage, 'namespace', 'missing');
      throw new PlatformError('NAMESPACE_REQUIRED', `Send the namespace in the ${HEADERS.namespace} header.`);
    }
    mark(passage, 'namespace', 'ok');
    return keys;
  }

  /** Step 3. Namespaces without a secret share one budget, so that made-up names cost no memory and win no extra tries. */
  async function limit(passage: Passage, webhook: WebhookHandlerDecl, provisioned: boolean): Promise<void> {
    const { namespaceId, pluginId, instanceId } = passage;
    const key = JSON.stringify([
      ...[provisioned ? namespaceId : '', pluginId, webhook.event],
      provisioned ? instanceId : '',
    ]);
    const { requestsPerMinute } = webhook.rateLimit;
    try {
      const taken = limiter.take(key, requestsPerMinute);
      requireRoom(taken instanceof Promise ? await taken : taken, requestsPerMinute);
      mark(passage, 'rate_limit', 'ok');
    } catch (error) {
      mark(passage, 'rate_limit', codeOf(error) ?? 'failed');
      throw error;
    }
  }

  return {
    /** Throws PLUGIN_NOT_FOUND, WEBHOOK_NOT_FOUND, NAMESPACE_REQUIRED, VALIDATION_ERROR, RATE_LIMIT_EXCEEDED. */
    async admit(passage: Passage): Promise<Admitted> {
      const { pluginId, event, instanceId } = passage.incoming;
      const target = step(passage, 'route', () => targets.require(pluginId, event, instanceId));
      const keys = await findNamespace(passage);
      await limit(passage, target.webhook, keys !== undefined);
      return { target, keys };
    },
  };
}

function requireRoom({ allowed, resetMs }: RateVerdict, requestsPerMinute: number): void {
  if (allowed) return;
  throw tooMany(`This webhook takes ${requestsPerMinute} deliveries a minute`, requestsPerMinute, resetMs);
}

function faultOf(sent: string | typeof REPEATED): string | undefined {
  if (sent === REPEATED) return 'must be sent once';
  return NamespaceId.safeParse(sent).error?.issues[0]?.message;
}
