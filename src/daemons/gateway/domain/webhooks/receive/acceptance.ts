import { LIMITS, type WebhookHandlerDecl } from '../../../../../contracts/index.ts';
import { readDotPath } from '../../../../../kit/data/json.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { minutes } from '../../../../../kit/time/duration.ts';
import type { ClaimResult, MarkerClaim, WebhookInbox } from '../../../../../store/ports/index.ts';
import { type ReceiveRules, receiveRulesOf } from '../../../../../webhooks/receive-rules.ts';
import type { Fence } from '../../../../membership/membership.ts';
import type { DeliveryEnds } from '../dispatch/delivery-ends.ts';
import { type CallHandler, type Handled, handlerTimeoutMs } from '../dispatch/handler-call.ts';
import type { WebhookDispatcher } from '../dispatch/webhook-dispatcher.ts';
import { type AcceptedAnswer, acceptedReply } from './accepted-reply.ts';
import { type DeliveryContext, deliveryOf } from './delivery-context.ts';
import { LateRuns, type SyncRun } from './late-runs.ts';
import { createMarkerWaits, type MarkerWaits } from './marker-waits.ts';
import type { JsonPayload } from './payload.ts';
import { mark } from './step-log.ts';
import type { DeclaredWebhook } from './targets.ts';

export interface AcceptanceDeps {
  inbox: WebhookInbox;
  ends: Pick<DeliveryEnds, 'storeLater'>;
  fence: Fence;
  dispatcher: WebhookDispatcher;
  call: CallHandler;
  clock: Clock;
  /** Counts a finished delivery. */
  observe: (pluginId: string, event: string, status: string) => void;
}

/** Response to an authentic delivery, or `duplicate` if a delivery with the same id was already processed. */
export type Accepted = AcceptedAnswer | 'duplicate';

/**
 * Time added to the lease of a dedupe marker, in ms. The time allows for starting workflows and storing the outcome.
 */
const LEASE_MARGIN_MS = minutes(1);

/**
 * Stores the delivery and runs its handler. `markerKey` is the key of the dedupe marker, or undefined if the delivery
 * has no id. @spec Webhook delivery step 7
 */
export class Acceptance {
  readonly #deps: AcceptanceDeps;
  readonly #waits: MarkerWaits;
  readonly #lateRuns: LateRuns;

  constructor(deps: AcceptanceDeps) {
    this.#deps = deps;
    this.#waits = createMarkerWaits(deps.inbox, deps.clock);
    this.#lateRuns = new LateRuns(deps);
  }

  /**
   * Stores the delivery on disk and answers 202. The handler runs later. Throws SERVICE_UNAVAILABLE if storing fails.
   */
  async accept(
    context: DeliveryContext,
    target: DeclaredWebhook,
    payload: JsonPayload,
    markerKey: string | undefined,
  ): Promise<Accepted> {
    const { webhookId } = context;
    const delivery = deliveryOf(context, 'async', orderKeyOf(target.webhook, payload.value));
    const marker = markerOf(markerKey, this.#deps.clock.now() + LIMITS.idempotencyWindowMs);
    const answered = () => this.#deps.dispatcher.answered(webhookId);
    this.#deps.dispatcher.expectAnswer(webhookId);
    let isAccepted = false;
    try {
      const claim = await this.#claimOrWait(marker, () => {
        mark(context, 'dispatch', 'accepted');
        return this.#deps.inbox.accept(delivery, marker, context.steps.text);
      });
      if (claim === 'done') return 'duplicate';
      const queued =
        claim === 'spilled' ? undefined : this.#deps.dispatcher.enqueue(delivery, target, payload);
      if (queued) await queued;
      isAccepted = true;
      const { accepted } = receiveRulesOf(target.webhook);
      return accepted
        ? { ...acceptedReply(accepted), answered }
        : { status: 202, body: { status: 'accepted', webhookId }, answered };
    } finally {
      if (!isAccepted) answered();
    }
  }

  /**
   * Runs the handler and returns its result once the result is on disk. Throws SERVICE_UNAVAILABLE if storing fails.
   */
  async handle(
    context: DeliveryContext,
    target: DeclaredWebhook,
    payload: JsonPayload,
    markerKey: string | undefined,
  ): Promise<Accepted> {
    const delivery = deliveryOf(context, 'sync', null);
    // The lease covers the wait for a plugin process and the run, each limited by the handler timeout. An expired lease
    // means that the process died, so another delivery is allowed to run.
    const marker = markerOf(
      markerKey,
      this.#deps.clock.now() + 2 * handlerTimeoutMs(target) + LEASE_MARGIN_MS,
    );
    const claim = await this.#claimOrWait(marker, () => {
      const owner = this.#deps.fence.require();
      return this.#deps.inbox.begin(delivery, marker, owner).catch((error) => {
        this.#release(context, markerKey);
        throw error;
      });
    });
    if (claim === 'done') return 'duplicate';
    const run: SyncRun = {
      context,
      delivery,
      target,
      payload,
      markerKey,
      release: this.#waits.hold(markerKey),
    };
    const ending = this.#runSync(run);
    const { ackAfterMs } = receiveRulesOf(target.webhook);
    return ackAfterMs === undefined ? ending : this.#lateRuns.answer(run, ending, ackAfterMs);
  }

  /** Waits for handlers whose sender was answered before their end. */
  close(): Promise<void> {
    return this.#lateRuns.close();
  }

  async #runSync(run: SyncRun): Promise<AcceptedAnswer> {
    const { context, delivery, target, payload, markerKey } = run;
    try {
      const handled = await this.#deps.call(delivery, target, payload, context.deliveryId);
      run.hasEnded = true;
      const isHandedOver = run.handingOver !== undefined && (await run.handingOver);
      const status = handled.succeeded ? 'succeeded' : 'failed';
      mark(context, 'dispatch', status);
      const rules = receiveRulesOf(target.webhook);
      const answer = answerOf(handled, rules);
      const end = {
        status,
        httpStatus: isHandedOver ? run.ackStatus! : answer.status,
        steps: isHandedOver ? context.steps.text.slice(run.handedSteps) : context.steps.text,
        outcome: handled.record,
        durationMs: this.#deps.clock.monotonic() - context.beganAt,
      } as const;
      const expiresAt = handled.succeeded ? this.#deps.clock.now() + LIMITS.idempotencyWindowMs : null;
      const ended = markerKey === undefined || isHandedOver ? undefined : { key: markerKey, expiresAt };
      await this.#deps.inbox.finish(context.webhookId, end, ended).catch((error) => {
        this.#deps.ends.storeLater(context.webhookId, end, ended);
        return notStored('The handler ran, but its result could not be stored; send the delivery again.')(
          error,
        );
      });
      this.#deps.observe(target.plugin.id, target.webhook.event, status);
      return answer;
    } finally {
      run.release();
    }
  }

  /**
   * Releases the dedupe marker of a delivery that did not run. The marker might be stored even though the store
   * reported an error.
   */
  #release({ webhookId, beganAt, steps }: DeliveryContext, markerKey: string | undefined): void {
    const durationMs = this.#deps.clock.monotonic() - beganAt;
    const end = {
      status: 'interrupted',
      httpStatus: 503,
      steps: steps.text,
      outcome: null,
      durationMs,
    } as const;
    const marker = markerKey === undefined ? undefined : { key: markerKey, expiresAt: null };
    this.#deps.ends.storeLater(webhookId, end, marker);
  }

  /**
   * Claims the dedupe marker. If a delivery with the same id is running, waits for the end of that delivery. Claims the
   * marker afterwards only if that delivery failed.
   */
  async #claimOrWait<Result extends ClaimResult | 'spilled'>(
    marker: MarkerClaim | undefined,
    claim: () => Promise<Result>,
  ): Promise<Exclude<Result, 'pending'>> {
    for (;;) {
      const result = await claim().catch(
        notStored('The delivery could not be stored and was not accepted; send it again.'),
      );
      if (result !== 'pending') return result as Exclude<Result, 'pending'>;
      await this.#waits.settled(marker!.key);
    }
  }
}

/** Returns the response to a sync delivery. What the sender requires replaces the platform's answer to a success. */
function answerOf(
  { succeeded, httpStatus, body, headers, content }: Handled,
  { accepted }: ReceiveRules,
): AcceptedAnswer {
  if (succeeded && accepted && !content) return acceptedReply(accepted);
  return { status: httpStatus, body, headers, content };
}

function markerOf(key: string | undefined, expiresAt: number): MarkerClaim | undefined {
  return key === undefined ? undefined : { key, expiresAt };
}

function notStored(message: string): (cause: unknown) => never {
  return (cause) => {
    throw new PlatformError('SERVICE_UNAVAILABLE', message, { cause });
  };
}

/** Returns the order key of a payload, or null if the value of the `orderBy` field is neither a string nor a number. */
export function orderKeyOf({ orderBy }: WebhookHandlerDecl, payload: unknown): string | null {
  const value = orderBy === undefined ? undefined : readDotPath(payload, orderBy);
  return typeof value === 'string' || typeof value === 'number' ? JSON.stringify(value) : null;
}
