import {
  type Caller,
  HEADERS,
  LIMITS,
  NamespaceId,
  type WebhookHandlerDecl,
} from '../../../contracts/index.ts';
import { createBoundedCache } from '../../../kit/bounded-cache.ts';
import type { Clock } from '../../../kit/clock.ts';
import { minutes } from '../../../kit/duration.ts';
import { codeOf, errorBody, PlatformError, toRemoteError } from '../../../kit/errors.ts';
import { readDotPath } from '../../../kit/json.ts';
import type { Logger } from '../../../kit/logger.ts';
import type { Random } from '../../../kit/random.ts';
import { type CreateLimiter, createRateLimiter, type RateVerdict } from '../../../kit/rate-limiter.ts';
import type {
  ClaimResult,
  MarkerClaim,
  NewDelivery,
  SecretKey,
  WebhookInbox,
} from '../../../store/ports/index.ts';
import { REPEATED, singleHeader } from './raw-headers.ts';
import type { WebhookDispatcher } from './webhook-dispatcher.ts';
import { explainRefusal } from './webhook-explanation.ts';
import { type CallHandler, handlerTimeoutMs } from './webhook-handler-call.ts';
import { createMarkerWaits } from './webhook-marker-waits.ts';
import type { WebhookPauses } from './webhook-pauses.ts';
import { answerChallenge, deliveryIdOf, markerKey, parseOnce } from './webhook-payload.ts';
import { maskHeaders } from './webhook-record.ts';
import { describe, type VerificationKeys, type WebhookSecrets } from './webhook-secrets.ts';
import type { SignatureVerdict } from './webhook-signature.ts';
import { createStepLog, type StepLog, type StepName } from './webhook-steps.ts';
import type { DeclaredWebhook, WebhookTargets } from './webhook-targets.ts';
import type { WebhookVerifier } from './webhook-verifier.ts';

/** A request as the route hands it over; nothing of its body was read yet. */
export interface IncomingDelivery {
  pluginId: string;
  event: string;
  instanceId: string | undefined;
  /** node's flat list: names and values as sent. */
  rawHeaders: readonly string[];
  /** `?namespace=` of the URL, where the webhook allows it. */
  namespaceInUrl: string | undefined;
  /** The caller's IP address. */
  source: string;
  /** Default: a sender. */
  origin?: 'sender' | 'sample';
  requestId: string;
  traceId: string;
  /** Reads the raw body; throws PAYLOAD_TOO_LARGE. */
  readBody: (limitBytes: number) => Promise<Buffer>;
}

export interface DeliveryAnswer {
  status: number;
  body: unknown;
  headers: Record<string, string>;
  webhookId: string;
  /** Known once authenticated. */
  caller: Caller | null;
}

export interface WebhookDeliveryDeps {
  targets: WebhookTargets;
  secrets: WebhookSecrets;
  verifier: WebhookVerifier;
  dispatcher: WebhookDispatcher;
  call: CallHandler;
  pauses: () => WebhookPauses;
  inbox: WebhookInbox;
  createLimiter: CreateLimiter;
  /** Ids of the deliveries that are on their way through the steps; kept only where it is given. */
  underWay?: Set<string> | undefined;
  clock: Clock;
  random: Random;
  logger: Logger;
  /** Counts finished deliveries. */
  observe: (pluginId: string, event: string, status: string) => void;
}

/** One delivery on its way through the steps. */
interface Passage {
  incoming: IncomingDelivery;
  webhookId: string;
  receivedAt: number;
  steps: StepLog;
  namespaceId: string;
  instanceId: string;
  body: Buffer | null;
  caller: Caller | null;
  /** JSON for the record of a refused one: what was answered, and for a 401 why. */
  refusal: string | null;
}

type Answered = { status: number; body: unknown; record: 'challenge' | 'duplicate' | 'handled' };

/** The steps of a delivery, in the spec's order. @spec Webhook delivery; docs/decisions.md "Webhook delivery" */
export function createWebhookDelivery(deps: WebhookDeliveryDeps) {
  const { targets, secrets, verifier, dispatcher, call, pauses, inbox, clock, random, logger } = deps;
  const limiter = deps.createLimiter('webhook deliveries', { windowMs: minutes(1) });
  const waits = createMarkerWaits(inbox, clock);
  const namespaces = createBoundedCache<ReturnType<typeof NamespaceId.safeParse>>(1000);
  /** Refused signatures by address and namespace. */
  const failures = deps.createLimiter('webhook failures', { windowMs: minutes(1), exact: true });
  /** Of each process: what it bounds is each one's own work. */
  const explanations = createRateLimiter(clock, minutes(1));

  async function receive(incoming: IncomingDelivery): Promise<DeliveryAnswer> {
    const passage: Passage = {
      incoming,
      webhookId: random.uuid(),
      receivedAt: clock.now(),
      steps: createStepLog(),
      namespaceId: '',
      instanceId: incoming.instanceId ?? '',
      body: null,
      caller: null,
      refusal: null,
    };
    const received = dispatcher.receives();
    deps.underWay?.add(passage.webhookId);
    try {
      const { status, body, record } = await pass(passage);
      if (record !== 'handled') note(passage, record, status);
      return answer(passage, status, body, {});
    } catch (thrown) {
      const error = toRemoteError(thrown);
      if (!(thrown instanceof PlatformError))
        logger.error(`A delivery to ${incoming.pluginId} ${incoming.event} failed: ${codeOf(thrown) ?? ''}`, {
          requestId: incoming.requestId,
          error: thrown,
        });
      passage.refusal ??= JSON.stringify(errorBody(error));
      note(passage, 'refused', error.status);
      return answer(passage, error.status, errorBody(error), error.headers);
    } finally {
      received();
      deps.underWay?.delete(passage.webhookId);
    }
  }

  function answer(
    { webhookId, caller }: Passage,
    status: number,
    body: unknown,
    headers: Record<string, string>,
  ): DeliveryAnswer {
    return { status, body, headers: { ...headers, [HEADERS.webhookId]: webhookId }, webhookId, caller };
  }

  async function pass(passage: Passage): Promise<Answered> {
    const { incoming } = passage;
    const target = step(passage, 'route', () =>
      targets.require(incoming.pluginId, incoming.event, incoming.instanceId),
    );
    const { webhook } = target;
    const keys = await findNamespace(passage);
    const limited = step(passage, 'rate_limit', () => limit(passage, webhook, keys !== undefined));
    if (limited) await limited;

    const body = await readBody(passage, webhook);
    const payload = parseOnce(body);
    const challenge = webhook.challenge && answerChallenge(webhook.challenge, payload());
    if (challenge) {
      mark(passage, 'challenge', 'answered');
      return { status: 200, body: challenge, record: 'challenge' };
    }
    const id = webhook.idempotencyKey && deliveryIdOf(webhook.idempotencyKey, incoming.rawHeaders, payload);
    const marker = id === undefined ? undefined : markerKey(secretKeyOf(passage), id);
    if (marker && (await inbox.seen(marker, clock.now())) === 'done') {
      mark(passage, 'idempotency', 'seen');
      return DUPLICATE;
    }
    limitFailures(passage);
    const verdict = await verifier.verify(target, incoming.rawHeaders, body, keys, passage);
    mark(passage, 'authentication', verdict.valid ? `ok (${verdict.secret})` : verdict.fault);
    if (!verdict.valid) throw refused(passage, target, verdict, keys);
    if (verdict.secret === 'previous') secrets.notePreviousUse(secretKeyOf(passage), keys!);
    passage.caller = { hostId: `webhook:${incoming.pluginId}`, namespaceId: passage.namespaceId };

    const parsed = payload();
    if (parsed.fault)
      throw new PlatformError('VALIDATION_ERROR', `The body is not valid JSON: ${parsed.fault}.`);
    if (!webhook.async && pauses().isPaused(secretKeyOf(passage))) {
      mark(passage, 'dispatch', 'paused');
      throw new PlatformError(
        'SERVICE_UNAVAILABLE',
        'This webhook is paused; send the delivery again later.',
        {
          headers: { 'retry-after': PAUSED_RETRY_SECONDS },
        },
      );
    }
    return webhook.async
      ? await acceptAsync(passage, target, parsed.value, marker)
      : await handleSync(passage, target, parsed.value, marker);
  }

  /** Names are few and come again and again; a stranger's made-up ones push each other out. */
  function parseNamespace(text: unknown) {
    const known = typeof text === 'string' ? namespaces.get(text) : undefined;
    if (known) return known;
    const parsed = NamespaceId.safeParse(text);
    if (parsed.success) namespaces.set(parsed.data, parsed);
    return parsed;
  }

  /** Step 2. The secret's record tells whether the URL may name the namespace, so it is read here. */
  async function findNamespace(passage: Passage): Promise<VerificationKeys | undefined> {
    const { incoming } = passage;
    const sent = singleHeader(incoming.rawHeaders, HEADERS.namespace);
    const inUrl = sent === undefined ? incoming.namespaceInUrl : undefined;
    const named = parseNamespace(sent ?? inUrl);
    if (sent !== undefined && !named.success) {
      mark(passage, 'namespace', 'invalid');
      const fault = sent === REPEATED ? 'must be sent once' : named.error.issues[0]?.message;
      throw new PlatformError('VALIDATION_ERROR', `The ${HEADERS.namespace} header ${fault}.`);
    }
    passage.namespaceId = named.data ?? '';
    const keys = named.success ? await secrets.find(secretKeyOf(passage)) : undefined;
    if (!named.success || (sent === undefined && !keys?.namespaceInUrl)) {
      passage.namespaceId = '';
      mark(passage, 'namespace', 'missing');
      throw new PlatformError('NAMESPACE_REQUIRED', `Send the namespace in the ${HEADERS.namespace} header.`);
    }
    mark(passage, 'namespace', 'ok');
    return keys;
  }

  /** Step 3. Namespaces without a secret share one budget, so that made-up names cost no memory and win no extra tries. */
  function limit(
    passage: Passage,
    webhook: WebhookHandlerDecl,
    provisioned: boolean,
  ): Promise<void> | undefined {
    const { requestsPerMinute } = webhook.rateLimit;
    const owner = provisioned ? passage.namespaceId : '';
    const instance = provisioned ? passage.instanceId : '';
    const key = JSON.stringify([owner, passage.incoming.pluginId, webhook.event, instance]);
    const judge = ({ allowed, resetMs }: RateVerdict): void => {
      if (allowed) return;
      throw tooMany(
        `This webhook takes ${requestsPerMinute} deliveries a minute`,
        requestsPerMinute,
        resetMs,
      );
    };
    const taken = limiter.take(key, requestsPerMinute);
    if (taken instanceof Promise) {
      return taken.then(judge).catch((error) => {
        mark(passage, 'rate_limit', codeOf(error) ?? 'failed');
        throw error;
      });
    }
    judge(taken);
    return undefined;
  }

  /** An address that fails and fails is not checked again for a while: neither plugin code nor records for it. */
  function limitFailures(passage: Passage): void {
    const limit = LIMITS.webhookFailuresPerMinute;
    const { allowed, resetMs } = failures.peek(failureKey(passage), limit);
    if (allowed) return;
    mark(passage, 'authentication', 'too_many_failures');
    throw tooMany('Too many deliveries from this address were not authentic', limit, resetMs);
  }

  async function readBody(passage: Passage, webhook: WebhookHandlerDecl): Promise<Buffer> {
    const encoding = singleHeader(passage.incoming.rawHeaders, 'content-encoding');
    if (encoding !== undefined && (encoding === REPEATED || encoding.toLowerCase() !== 'identity')) {
      mark(passage, 'body', 'encoded');
      throw new PlatformError(
        'UNSUPPORTED_MEDIA_TYPE',
        'Send the body without Content-Encoding: its signature is over the bytes as they are.',
      );
    }
    try {
      passage.body = await passage.incoming.readBody(webhook.maxBodyBytes);
    } catch (error) {
      mark(passage, 'body', codeOf(error) ?? 'failed');
      throw error;
    }
    return passage.body;
  }

  async function acceptAsync(
    passage: Passage,
    target: DeclaredWebhook,
    payload: unknown,
    markerKey: string | undefined,
  ): Promise<Answered> {
    const delivery = { ...deliveryOf(passage, 'async'), orderKey: orderKeyOf(target.webhook, payload) };
    const marker = markerKey
      ? { key: markerKey, expiresAt: clock.now() + LIMITS.idempotencyWindowMs }
      : undefined;
    const claim = await claimOrWait(marker, () => {
      mark(passage, 'dispatch', 'accepted');
      return inbox.accept(delivery, marker, passage.steps.text());
    });
    if (claim === 'done') return DUPLICATE;
    const queued = dispatcher.enqueue(delivery, target, payload);
    if (queued) await queued;
    return { status: 202, body: { status: 'accepted', webhookId: passage.webhookId }, record: 'handled' };
  }

  async function handleSync(
    passage: Passage,
    target: DeclaredWebhook,
    payload: unknown,
    markerKey: string | undefined,
  ): Promise<Answered> {
    const delivery = deliveryOf(passage, 'sync');
    // The lease outlives the handler's own limit: a live winner always ends before it, a dead one is overtaken after it.
    const lease = clock.now() + handlerTimeoutMs(target) + LEASE_MARGIN_MS;
    const marker = markerKey ? { key: markerKey, expiresAt: lease } : undefined;
    const claim = await claimOrWait(marker, () => inbox.begin(delivery, marker));
    if (claim === 'done') return DUPLICATE;
    const release = waits.hold(markerKey);
    try {
      const handled = await call(delivery, target, payload);
      mark(passage, 'dispatch', handled.succeeded ? 'succeeded' : 'failed');
      await inbox.finish(
        passage.webhookId,
        {
          status: handled.succeeded ? 'succeeded' : 'failed',
          httpStatus: handled.httpStatus,
          steps: passage.steps.text(),
          outcome: handled.record,
          durationMs: clock.now() - passage.receivedAt,
        },
        markerKey
          ? { key: markerKey, expiresAt: handled.succeeded ? clock.now() + LIMITS.idempotencyWindowMs : null }
          : undefined,
      );
      deps.observe(target.plugin.id, target.webhook.event, handled.succeeded ? 'succeeded' : 'failed');
      return { status: handled.httpStatus, body: handled.body, record: 'handled' };
    } finally {
      release();
    }
  }

  /** Of racing deliveries with one id, one runs; the others wait for it and run only when it failed. */
  async function claimOrWait(
    marker: MarkerClaim | undefined,
    claim: () => Promise<ClaimResult>,
  ): Promise<'begun' | 'done'> {
    for (;;) {
      const result = await claimDurably(claim);
      if (result !== 'pending') return result;
      await waits.settled(marker!.key);
    }
  }

  async function claimDurably(claim: () => Promise<ClaimResult>): Promise<ClaimResult> {
    try {
      return await claim();
    } catch (error) {
      throw new PlatformError(
        'SERVICE_UNAVAILABLE',
        'The delivery could not be stored, so it was not accepted; send it again.',
        {
          cause: error,
          headers: { 'retry-after': '5' },
        },
      );
    }
  }

  function deliveryOf(passage: Passage, mode: 'sync' | 'async'): NewDelivery {
    const { incoming, webhookId, receivedAt, namespaceId, instanceId, body } = passage;
    const { pluginId, event, source, requestId, traceId, rawHeaders } = incoming;
    return {
      webhookId,
      namespaceId,
      pluginId,
      event,
      instanceId,
      receivedAt,
      source,
      requestId,
      traceId,
      headers: maskHeaders(rawHeaders),
      body,
      mode,
      origin: incoming.origin ?? 'sender',
      replayOf: null,
      orderKey: null,
    };
  }

  /** Keeps a record of what no handler saw; bodies of strangers are not kept. */
  function note(passage: Passage, status: 'refused' | 'challenge' | 'duplicate', httpStatus: number): void {
    const { pluginId, event } = passage.incoming;
    // Labels of metrics come from manifests alone: a stranger must not be able to make new ones.
    if (targets.isDeclared(pluginId, event)) deps.observe(pluginId, event, status);
    else deps.observe('(unknown)', '(unknown)', status);
    // Without a plugin or a namespace there is nobody to show the record to.
    if (passage.namespaceId === '') return;
    inbox.note(
      { ...deliveryOf(passage, 'sync'), body: null },
      {
        status,
        httpStatus,
        steps: passage.steps.text(),
        outcome: passage.refusal,
        durationMs: clock.now() - passage.receivedAt,
      },
    );
  }

  /** Explained by what usually goes wrong, as long as explaining does not become the work. */
  function explain(
    passage: Passage,
    target: DeclaredWebhook,
    verdict: Refusal,
    keys: VerificationKeys | undefined,
  ) {
    const { auth } = target.webhook;
    if (auth.type === 'custom')
      return { reason: verdict.fault, hint: "The plugin's own validator said no; see its log." };
    if (!explanations.take('', EXPLANATIONS_PER_MINUTE).allowed) return null;
    const { rawHeaders } = passage.incoming;
    const body = passage.body!;
    return explainRefusal({ auth, ...verdict, rawHeaders, body, keys, nowMs: clock.now() });
  }

  function refused(
    passage: Passage,
    target: DeclaredWebhook,
    verdict: Refusal,
    keys: VerificationKeys | undefined,
  ): PlatformError {
    const { fault } = verdict;
    const { incoming, namespaceId } = passage;
    const noted = failures.take(failureKey(passage), LIMITS.webhookFailuresPerMinute);
    // Whoever counts may be gone; the sender is refused all the same.
    if (noted instanceof Promise) noted.catch(() => {});
    passage.refusal = JSON.stringify({ explanation: explain(passage, target, verdict, keys) });
    logger.diagnostic(
      {
        domain: 'webhook',
        event: 'webhook.authentication_failed',
        level: 'warn',
        reasonCode: fault.toUpperCase(),
        message: `A delivery to ${describe(secretKeyOf(passage))} was refused: ${fault}`,
        outcome: 'refused',
        evidence: {
          webhookId: passage.webhookId,
          authType: target.webhook.auth.type,
          source: incoming.source,
        },
      },
      {
        requestId: incoming.requestId,
        traceId: incoming.traceId,
        tenantId: namespaceId,
        pluginId: incoming.pluginId,
      },
    );
    return new PlatformError(
      'UNAUTHORIZED',
      'The delivery is not authentic: check the secret and how it is sent.',
    );
  }

  function step<T>(passage: Passage, name: StepName, run: () => T): T {
    try {
      const result = run();
      mark(passage, name, 'ok');
      return result;
    } catch (error) {
      mark(passage, name, codeOf(error) ?? 'failed');
      throw error;
    }
  }

  function mark(passage: Passage, name: StepName, outcome: string): void {
    passage.steps.mark(name, outcome);
  }

  return { receive };
}
export type WebhookDelivery = ReturnType<typeof createWebhookDelivery>;

/** Which secret, and so which marker and which budget, a passage is about. */
function secretKeyOf({ namespaceId, instanceId, incoming }: Passage): SecretKey {
  return { namespaceId, pluginId: incoming.pluginId, event: incoming.event, instanceId };
}

const DUPLICATE: Answered = { status: 200, body: { status: 'duplicate' }, record: 'duplicate' };
const LEASE_MARGIN_MS = 15_000;
const PAUSED_RETRY_SECONDS = '60';
const EXPLANATIONS_PER_MINUTE = 300;

type Refusal = Extract<SignatureVerdict, { valid: false }>;

function failureKey({ incoming, namespaceId }: Passage): string {
  return `${incoming.source} ${namespaceId}`;
}

function tooMany(what: string, limit: number, resetMs: number): PlatformError {
  const seconds = Math.max(1, Math.ceil(resetMs / 1000));
  return new PlatformError('RATE_LIMIT_EXCEEDED', `${what}; try again in ${seconds} s.`, {
    details: { requestsPerMinute: limit, retryAfterSeconds: seconds },
    headers: { 'retry-after': String(seconds) },
  });
}

/** Text or a number; anything else has no order. */
function orderKeyOf({ orderBy }: WebhookHandlerDecl, payload: unknown): string | null {
  const value = orderBy === undefined ? undefined : readDotPath(payload, orderBy);
  return typeof value === 'string' || typeof value === 'number' ? JSON.stringify(value) : null;
}
