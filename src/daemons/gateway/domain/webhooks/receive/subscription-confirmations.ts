import { messageOf } from '../../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import { seconds } from '../../../../../kit/time/duration.ts';
import type { WebhookInbox } from '../../../../../store/ports/index.ts';
import { confirmationUrlOf } from '../../../../../webhooks/built-in/aws-sns.ts';
import type { DeliveryContext } from './delivery-context.ts';
import { describeEndpoint } from './endpoint-name.ts';

/** Calls a URL without following redirects. Rejects for any response that is not a success. */
export type CallUrl = (url: string, signal: AbortSignal) => Promise<void>;

export interface SubscriptionConfirmationsDeps {
  inbox: Pick<WebhookInbox, 'finish' | 'flush'>;
  callUrl: CallUrl;
  logger: Logger;
}

const CALL_TIMEOUT_MS = seconds(5);
/** Pauses between the attempts, in ms of wall-clock time. */
const PAUSES_MS = [1000, 5000, 30_000];
/** Maximum number of confirmations in flight. Further ones fail, and their subscriptions can be requested again. */
const MAX_RUNNING = 20;

/**
 * Confirms subscriptions of AWS SNS in the background, by a call of the URL in the authenticated message. The record of
 * the delivery shows the result.
 */
export class SubscriptionConfirmations {
  readonly #deps: SubscriptionConfirmationsDeps;
  readonly #running = new Set<Promise<void>>();
  readonly #stop = new AbortController();

  constructor(deps: SubscriptionConfirmationsDeps) {
    this.#deps = deps;
  }

  /** Starts the confirmation. Its request must be recorded already. */
  confirm(context: DeliveryContext, message: unknown): void {
    const running = this.#run(context, message).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Stops waiting confirmations, and waits for calls in flight. */
  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
  }

  async #run(context: DeliveryContext, message: unknown): Promise<void> {
    const startedAt = performance.now();
    const fault = await this.#attempt(message);
    const { logger, inbox } = this.#deps;
    const { webhookId, namespaceId, pluginId, incoming } = context;
    const fields = { requestId: incoming.requestId, tenantId: namespaceId, pluginId };
    if (fault)
      logger.error(`The subscription of ${describeEndpoint(context)} was not confirmed: ${fault}`, fields);
    else logger.info(`The subscription of ${describeEndpoint(context)} is confirmed`, fields);
    const tookMs = performance.now() - startedAt;
    const end = {
      status: 'challenge',
      httpStatus: 200,
      steps: `confirmation=${fault ? 'failed' : 'ok'}@${Math.round(tookMs * 1000)}us`,
      outcome: fault ? JSON.stringify({ error: { code: 'UPSTREAM_UNAVAILABLE', message: fault } }) : null,
      durationMs: tookMs,
    } as const;
    try {
      // The record is buffered, and an end without a record has no effect.
      await inbox.flush();
      await inbox.finish(webhookId, end);
    } catch (error) {
      logger.error('The confirmation of a subscription could not be recorded', {
        error,
        meta: { webhookId },
      });
    }
  }

  /** Returns why the subscription was not confirmed, or undefined after a success. */
  async #attempt(message: unknown): Promise<string | undefined> {
    const { url, fault } = confirmationUrlOf(message);
    if (fault) return CONFIRMATION_FAULTS[fault];
    if (this.#running.size >= MAX_RUNNING) return 'too many confirmations are in flight';
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#deps.callUrl(
          url,
          AbortSignal.any([this.#stop.signal, AbortSignal.timeout(CALL_TIMEOUT_MS)]),
        );
        return undefined;
      } catch (error) {
        const pauseMs = PAUSES_MS[attempt];
        if (pauseMs === undefined || !(await this.#pause(pauseMs))) return messageOf(error);
      }
    }
  }

  /** Resolves with false if the confirmations are closed. */
  #pause(ms: number): Promise<boolean> {
    const { signal } = this.#stop;
    if (signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const end = (isOver: boolean) => () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', stopped);
        resolve(isOver);
      };
      const stopped = end(false);
      const timer = setTimeout(end(true), ms).unref();
      signal.addEventListener('abort', stopped, { once: true });
    });
  }
}

const CONFIRMATION_FAULTS = {
  not_a_confirmation: 'the message is no confirmation of a subscription',
  url_not_allowed: 'the confirmation URL of the message is not that of its topic at Amazon',
} as const;

/** Calls a URL over HTTPS. A redirect is a failure, because its target is not checked. */
export async function callUrl(url: string, signal: AbortSignal): Promise<void> {
  const response = await fetch(url, { redirect: 'manual', signal });
  await response.body?.cancel();
  if (response.status < 200 || response.status >= 300)
    throw new Error(`the confirmation URL answered ${response.status}`);
}
