import { LIMITS } from '../../../../../contracts/index.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import type { NewDelivery, WebhookInbox } from '../../../../../store/ports/index.ts';
import { receiveRulesOf } from '../../../../../webhooks/receive-rules.ts';
import { type AcceptedAnswer, acceptedReply } from './accepted-reply.ts';
import type { DeliveryContext } from './delivery-context.ts';
import type { JsonPayload } from './payload.ts';
import { mark } from './step-log.ts';
import type { DeclaredWebhook } from './targets.ts';

/** A sync delivery whose handler runs. */
export interface SyncRun {
  context: DeliveryContext;
  delivery: NewDelivery;
  target: DeclaredWebhook;
  payload: JsonPayload;
  markerKey: string | undefined;
  /** Ends the wait of deliveries with the same id. */
  release: () => void;
  /** Whether the handler has ended, and its result is being stored. */
  hasEnded?: boolean;
  /** Set while the delivery becomes an async one. Resolves with false if it could not be stored as such. */
  handingOver?: Promise<boolean>;
  /** Status of the response before the end of the handler. */
  ackStatus?: number;
  /** Length of the step log that is stored already. */
  handedSteps?: number;
}

export interface LateRunsDeps {
  inbox: Pick<WebhookInbox, 'handOver'>;
  clock: Clock;
}

/**
 * Answers senders whose time limit is shorter than a handler (`ackAfterMs`). The delivery is first stored as an async
 * one, so that it runs again after a crash. The running handler continues, and its end is stored as usual.
 */
export class LateRuns {
  readonly #deps: LateRunsDeps;
  readonly #late = new Set<Promise<unknown>>();

  constructor(deps: LateRunsDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves with the response of the handler, or after `ackAfterMs` with the response to an accepted delivery. If the
   * delivery cannot be stored as an async one, the handler's response is awaited.
   */
  async answer(run: SyncRun, ending: Promise<AcceptedAnswer>, ackAfterMs: number): Promise<AcceptedAnswer> {
    const late = Symbol();
    let stop = (): void => {};
    const timeUp = new Promise<typeof late>((resolve) => {
      const timer = setTimeout(() => resolve(late), ackAfterMs);
      stop = () => clearTimeout(timer);
    });
    const first = await Promise.race([ending, timeUp]).finally(() => stop());
    if (first !== late) return first as AcceptedAnswer;
    if (run.hasEnded) return ending;
    const answer = acceptedAnswer(run);
    run.ackStatus = answer.status;
    run.handingOver = this.#handOver(run);
    if (!(await run.handingOver)) return ending;
    run.release();
    const ended = ending.catch(() => {}).finally(() => this.#late.delete(ended));
    this.#late.add(ended);
    return answer;
  }

  /** Waits for the handlers in flight. */
  async close(): Promise<void> {
    await Promise.all(this.#late);
  }

  async #handOver(run: SyncRun): Promise<boolean> {
    const { context, markerKey } = run;
    mark(context, 'dispatch', 'accepted');
    const steps = context.steps.text;
    run.handedSteps = steps.length;
    const expiresAt = this.#deps.clock.now() + LIMITS.idempotencyWindowMs;
    try {
      const marker = markerKey === undefined ? undefined : { key: markerKey, expiresAt };
      await this.#deps.inbox.handOver(context.webhookId, steps, marker);
      return true;
    } catch {
      return false;
    }
  }
}

function acceptedAnswer({ context: { webhookId }, target }: SyncRun): AcceptedAnswer {
  const { accepted } = receiveRulesOf(target.webhook);
  return accepted ? acceptedReply(accepted) : { status: 202, body: { status: 'accepted', webhookId } };
}
