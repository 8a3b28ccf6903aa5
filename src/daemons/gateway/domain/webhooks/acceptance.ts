import { LIMITS, type WebhookHandlerDecl } from '../../../../contracts/index.ts';
import type { Clock } from '../../../../kit/clock.ts';
import { PlatformError } from '../../../../kit/errors.ts';
import { readDotPath } from '../../../../kit/json.ts';
import type { ClaimResult, MarkerClaim, WebhookInbox } from '../../../../store/ports/index.ts';
import type { WebhookDispatcher } from './dispatcher.ts';
import { type CallHandler, handlerTimeoutMs } from './handler-call.ts';
import { createMarkerWaits } from './marker-waits.ts';
import { deliveryOf, type Passage } from './passage.ts';
import type { JsonPayload } from './payload.ts';
import { mark } from './steps.ts';
import type { DeclaredWebhook } from './targets.ts';

export interface AcceptanceDeps {
  inbox: WebhookInbox;
  dispatcher: WebhookDispatcher;
  call: CallHandler;
  clock: Clock;
  /** Counts finished deliveries. */
  observe: (pluginId: string, event: string, status: string) => void;
}

/** What a sender is told of an authentic delivery; `duplicate`: another one with its id came through. */
export type Accepted = { status: number; body: unknown } | 'duplicate';

const LEASE_MARGIN_MS = 15_000;
const RETRY_SECONDS = '5';

/** Step 7: on disk first, then to the handler. `markerKey` names the delivery's id, where it has one. @spec Webhook delivery step 7 */
export function createAcceptance({ inbox, dispatcher, call, clock, observe }: AcceptanceDeps) {
  const waits = createMarkerWaits(inbox, clock);

  /** Of racing deliveries with one id, one runs; the others wait for it and run only when it failed. */
  async function claimOrWait(
    marker: MarkerClaim | undefined,
    claim: () => Promise<ClaimResult>,
  ): Promise<'begun' | 'done'> {
    for (;;) {
      const result = await claim().catch(notStored);
      if (result !== 'pending') return result;
      await waits.settled(marker!.key);
    }
  }

  return {
    /** 202 once it is on disk; the handler runs afterwards. Throws SERVICE_UNAVAILABLE when it cannot be written. */
    async accept(
      passage: Passage,
      target: DeclaredWebhook,
      payload: JsonPayload,
      markerKey: string | undefined,
    ): Promise<Accepted> {
      const delivery = deliveryOf(passage, 'async', orderKeyOf(target.webhook, payload.value));
      const marker = markerOf(markerKey, clock.now() + LIMITS.idempotencyWindowMs);
      const claim = await claimOrWait(marker, () => {
        mark(passage, 'dispatch', 'accepted');
        return inbox.accept(delivery, marker, passage.steps.text);
      });
      if (claim === 'done') return 'duplicate';
      const queued = dispatcher.enqueue(delivery, target, payload);
      if (queued) await queued;
      return { status: 202, body: { status: 'accepted', webhookId: passage.webhookId } };
    },

    /** The handler's outcome, once that is on disk too. Throws SERVICE_UNAVAILABLE when it cannot be written. */
    async handle(
      passage: Passage,
      target: DeclaredWebhook,
      payload: JsonPayload,
      markerKey: string | undefined,
    ): Promise<Accepted> {
      const delivery = deliveryOf(passage, 'sync', null);
      // The lease outlives the handler's own limit: a live winner always ends before it, a dead one is overtaken after it.
      const marker = markerOf(markerKey, clock.now() + handlerTimeoutMs(target) + LEASE_MARGIN_MS);
      const claim = await claimOrWait(marker, () => inbox.begin(delivery, marker));
      if (claim === 'done') return 'duplicate';
      const release = waits.hold(markerKey);
      try {
        const handled = await call(delivery, target, payload);
        const status = handled.succeeded ? 'succeeded' : 'failed';
        mark(passage, 'dispatch', status);
        await inbox.finish(
          passage.webhookId,
          {
            status,
            httpStatus: handled.httpStatus,
            steps: passage.steps.text,
            outcome: handled.record,
            durationMs: clock.now() - passage.receivedAt,
          },
          markerKey === undefined
            ? undefined
            : {
                key: markerKey,
                expiresAt: handled.succeeded ? clock.now() + LIMITS.idempotencyWindowMs : null,
              },
        );
        observe(target.plugin.id, target.webhook.event, status);
        return { status: handled.httpStatus, body: handled.body };
      } finally {
        release();
      }
    },
  };
}

function markerOf(key: string | undefined, expiresAt: number): MarkerClaim | undefined {
  return key === undefined ? undefined : { key, expiresAt };
}

function notStored(cause: unknown): never {
  throw new PlatformError(
    'SERVICE_UNAVAILABLE',
    'The delivery could not be stored, so it was not accepted; send it again.',
    { cause, headers: { 'retry-after': RETRY_SECONDS } },
  );
}

/** Text or a number; anything else has no order. */
function orderKeyOf({ orderBy }: WebhookHandlerDecl, payload: unknown): string | null {
  const value = orderBy === undefined ? undefined : readDotPath(payload, orderBy);
  return typeof value === 'string' || typeof value === 'number' ? JSON.stringify(value) : null;
}
