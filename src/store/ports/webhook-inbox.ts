import type { DeliveryStatus } from '../../contracts/index.ts';

/** What is known of a delivery when it is written down. Times in epoch ms. */
export interface NewDelivery {
  /** UUIDv7: its order is the order of lists. */
  webhookId: string;
  namespaceId: string;
  pluginId: string;
  event: string;
  instanceId: string;
  receivedAt: number;
  /** The caller's IP address. */
  source: string;
  requestId: string;
  traceId: string;
  /** Masked; JSON. */
  headers: string;
  body: Uint8Array | null;
  mode: 'sync' | 'async';
}

/** A delivery as stored. */
export interface DeliveryRecord extends NewDelivery {
  status: DeliveryStatus;
  httpStatus: number | null;
  /** What each step of the pipeline said; JSON. */
  steps: string;
  /** The handler's CommandResult or the failure; JSON, null until finished. */
  outcome: string | null;
  durationMs: number | null;
  attempts: number;
}

/**
 * How a delivery ended. `steps` is JSON as in DeliveryRecord.
 */
export interface DeliveryEnd {
  status: DeliveryStatus;
  httpStatus: number;
  steps: string;
  outcome: string | null;
  durationMs: number;
}

/**
 * The mark that a delivery id was seen. `pending` belongs to a running sync delivery and lapses with its lease,
 * so that the crash of its gateway does not lock the id for 7 days; `done` lasts the idempotency window.
 */
export type MarkerState = 'pending' | 'done';

export interface MarkerClaim {
  key: string;
  /** When a `pending` claim lapses (sync), or a `done` one is forgotten (async). */
  expiresAt: number;
}

/** `begun`: the caller owns the delivery. Else who came first: still at work, or through. */
export type ClaimResult = 'begun' | MarkerState;

/** Deliveries and their idempotency markers, together because they are written together. @spec Webhook delivery */
export interface WebhookInbox {
  /** Step 5: reads only. Expired markers are absent. */
  seen(markerKey: string, now: number): Promise<MarkerState | undefined>;
  /**
   * Sync: claims the marker as `pending` and writes the delivery as `running`, both or neither.
   * Settles once durable.
   */
  begin(delivery: NewDelivery, marker: MarkerClaim | undefined): Promise<ClaimResult>;
  /** Async: claims the marker as `done` and writes the delivery as `accepted`, both or neither; durable before the 202. */
  accept(delivery: NewDelivery, marker: MarkerClaim | undefined, steps: string): Promise<ClaimResult>;
  /**
   * Ends a delivery that was begun or accepted. With `marker`: success keeps it `done` until `expiresAt`,
   * failure (`expiresAt` null) deletes it so that the sender's redelivery runs, unless its lease lapsed and another
   * delivery holds it by now.
   */
  finish(
    webhookId: string,
    end: DeliveryEnd,
    marker?: { key: string; expiresAt: number | null },
  ): Promise<void>;
  /** Notes a delivery that was answered without a handler (refused, challenge, duplicate): losable, off the answer's path, never throws. */
  note(delivery: NewDelivery, end: DeliveryEnd): void;
  /** Accepted but not finished, oldest first: what a gateway dispatches at its start. Marks nothing. */
  unfinished(limit: number, afterWebhookId?: string): Promise<DeliveryRecord[]>;
  find(webhookId: string): Promise<DeliveryRecord | undefined>;
  /** Newest first, each with `body` null: bodies are large, `find` has them. */
  list(namespaceId: string, options: { limit: number; before?: string }): Promise<DeliveryRecord[]>;
  /**
   * Forgets deliveries received before `receivedBefore` (all but those accepted and still to do; a sync one left `running`
   * by a crash goes too) and expired markers, at most `limit` of each; returns how many rows went.
   */
  prune(options: { receivedBefore: number; now: number; limit: number }): Promise<number>;
  /** Waits for what `note` gathered. */
  flush(): Promise<void>;
}
