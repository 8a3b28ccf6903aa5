import type { NewDelivery } from '../../../../../store/ports/index.ts';
import type { JsonPayload } from '../receive/payload.ts';
import type { DeclaredWebhook } from '../receive/targets.ts';

/** Runs the handlers of accepted deliveries. */
export interface WebhookDispatcher {
  /**
   * Queues an accepted delivery that is already stored. If a promise is returned, the response must wait for the
   * promise, to preserve the order of deliveries.
   */
  enqueue(
    delivery: NewDelivery,
    target: DeclaredWebhook,
    payload: JsonPayload,
    marker?: Uint8Array | null,
  ): void | Promise<void>;
  /**
   * Delays the handler of this delivery until `answered` is called. Must be called before the commit, because the
   * dispatcher may load the delivery from the store right after the commit.
   */
  expectAnswer(webhookId: string): void;
  /** Must be called when the 202 is written or cannot be written any more. */
  answered(webhookId: string): void;
  /** Number of async deliveries that wait in memory, and of deliveries that run. */
  readonly load: { waiting: number; running: number };
  /** Changes the number of deliveries that are being received. */
  receiving(change: 1 | -1): void;
  /**
   * Runs stored deliveries that are not in memory: deliveries of an earlier process, and deliveries that were on hold.
   */
  runBacklog(): void;
  /** Waits for running deliveries. Waiting ones stay in the store for the next start. */
  close(): Promise<void>;
}
