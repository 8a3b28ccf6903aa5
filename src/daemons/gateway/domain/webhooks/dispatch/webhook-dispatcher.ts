import type { NewDelivery } from '../../../../../store/ports/index.ts';
import type { JsonPayload } from '../receive/payload.ts';
import type { DeclaredWebhook } from '../receive/targets.ts';

/** Runs the handlers of accepted deliveries. */
export interface WebhookDispatcher {
  /**
   * Queues an accepted delivery that is already stored. If the result is a promise, the response must wait for that
   * promise, to preserve the order of deliveries.
   */
  enqueue(
    delivery: NewDelivery,
    target: DeclaredWebhook,
    payload: JsonPayload,
    marker?: Uint8Array | null,
  ): void | Promise<void>;
  /**
   * Delays the handler of the delivery until `answered` is called. Must be called before the commit. After the commit,
   * the dispatcher can load the delivery from the store.
   */
  expectAnswer(webhookId: string): void;
  /** Records that the 202 response has been written or can no longer be written. */
  answered(webhookId: string): void;
  /** Number of waiting async deliveries in memory, and number of running deliveries. */
  readonly load: { waiting: number; running: number };
  /** Adds `change` to the number of deliveries whose request is being received. */
  receiving(change: 1 | -1): void;
  /** Runs stored deliveries that are not in memory, such as deliveries of an earlier process and delayed deliveries. */
  runBacklog(): void;
  /** Loads deliveries that were stored since the last load, if this process schedules deliveries. */
  pull(): void;
  /** Waits for running deliveries. Waiting deliveries stay in the store and run after the next start. */
  close(): Promise<void>;
}
