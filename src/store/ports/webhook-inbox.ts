import type { DeliveryStatus } from '../../contracts/index.ts';
import type { MaybePromise } from '../../kit/maybe-promise.ts';

/** What is known of a delivery when it is written down. Times in epoch ms. */
export interface NewDelivery {
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
  /** Of the body as received, whether it is kept or not. */
  bodyBytes: number;
  mode: 'sync' | 'async';
  /** Who made it: a sender, or an operator by sending a sample or replaying. */
  origin: 'sender' | 'sample' | 'replay';
  /** The delivery that this one repeats. */
  replayOf: string | null;
  /** Deliveries of one endpoint with the same value run one after the other. */
  orderKey: string | null;
}

/** A delivery as stored. */
export interface DeliveryRecord extends NewDelivery {
  /** Its place in the order in which deliveries were written, over all namespaces: what lists and streams continue after. */
  position: number;
  status: DeliveryStatus;
  httpStatus: number | null;
  /** What each step of the pipeline said, as text of the domain's making. */
  steps: string;
  /** The handler's CommandResult or the failure; JSON, null until finished. */
  outcome: string | null;
  durationMs: number | null;
  attempts: number;
  /** When a `retrying` one runs again. */
  nextAttemptAt: number | null;
  /** The latest delivery that repeats this one. */
  replayedBy: string | null;
  /** Names the marker that it claimed, for the replay that ends it. */
  marker: Uint8Array | null;
}

/** How a run of a delivery ended. */
export interface DeliveryEnd {
  status: DeliveryStatus;
  httpStatus: number;
  /** Written behind those that the delivery has. */
  steps: string;
  outcome: string | null;
  durationMs: number;
  /** Set with `retrying`. */
  nextAttemptAt?: number | null;
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

/** What a list or a bulk replay looks for; all that is given must hold. */
export interface DeliveryFilter {
  status?: readonly DeliveryStatus[] | undefined;
  pluginId?: string | undefined;
  event?: string | undefined;
  /** Received at this time or later. */
  since?: number | undefined;
  /** Text that the body, the outcome, the source or an id contains. */
  search?: string | undefined;
}

/** Where a delivery stands in a list: by the time of its receipt, and among equals by the order of writing. */
export type DeliveryPlace = Pick<DeliveryRecord, 'receivedAt' | 'position'>;

export interface DeliveryPage {
  items: DeliveryRecord[];
  /** Where to go on; null: that was all. */
  next: DeliveryPlace | null;
}

/** Deliveries and their idempotency markers, together because they are written together. @spec Webhook delivery */
export interface WebhookInbox {
  /** Step 5: reads only, and answers at once where memory knows. Expired markers are absent. */
  seen(markerKey: string, now: number): MaybePromise<MarkerState | undefined>;
  /**
   * Sync: claims the marker as `pending` and writes the delivery as `running`, both or neither.
   * Settles once durable.
   */
  begin(delivery: NewDelivery, marker: MarkerClaim | undefined): Promise<ClaimResult>;
  /** Async: claims the marker as `done` and writes the delivery as `accepted`, both or neither; durable before the 202. */
  accept(delivery: NewDelivery, marker: MarkerClaim | undefined, steps: string): Promise<ClaimResult>;
  /**
   * Ends a run of a delivery that was begun or accepted, and counts it as an attempt. With `marker`: success keeps it
   * `done` until `expiresAt`, failure (`expiresAt` null) deletes it so that the sender's redelivery runs, unless its
   * lease lapsed and another delivery holds it by now.
   */
  finish(
    webhookId: string,
    end: DeliveryEnd,
    marker?: { key: string; expiresAt: number | null },
  ): Promise<void>;
  /** Accepts a copy of `original` whatever its marker says, and notes on the original which delivery repeats it. */
  replay(delivery: NewDelivery, steps: string, original: DeliveryRecord): Promise<void>;
  /** After a replay succeeded: the sender's own redelivery of that id is a duplicate from now on. */
  settleMarker(marker: Uint8Array, expiresAt: number): Promise<void>;
  /** Whether the marker is `done`, by its name in a record. */
  isSettled(marker: Uint8Array, now: number): Promise<boolean>;
  /** Notes a delivery that was answered without a handler (refused, challenge, duplicate): losable, off the answer's path, never throws. */
  note(delivery: NewDelivery, end: DeliveryEnd): void;
  /** Accepted or waiting for another attempt, oldest first: what a gateway dispatches. Marks nothing. */
  unfinished(limit: number, afterPosition?: number): Promise<DeliveryRecord[]>;
  /**
   * Marks sync deliveries that another process left `running` as interrupted and frees their markers, so that redeliveries
   * need not wait for leases; returns how many. At the start of a gateway that owns the store: all of them. Given
   * `receivedUntil` (epoch ms) and `except`: those received by then, without those ids.
   */
  interrupt(which?: { receivedUntil: number; except: readonly string[] }): Promise<number>;
  /** With its body, unless that was pruned. */
  find(webhookId: string): Promise<DeliveryRecord | undefined>;
  /** Newest first, or with `after` oldest first; each with `body` null: bodies are large, `find` has them. */
  list(
    namespaceId: string,
    options: DeliveryFilter & {
      limit: number;
      before?: DeliveryPlace | undefined;
      after?: DeliveryPlace | undefined;
    },
  ): Promise<DeliveryPage>;
  /** Those written after a position, oldest first, with their bodies; for live streams. */
  after(namespaceId: string, position: number, limit: number): Promise<DeliveryRecord[]>;
  /** Those of these positions that have ended by now. */
  ended(namespaceId: string, positions: readonly number[]): Promise<DeliveryRecord[]>;
  /** The newest position, 0 when there is none. */
  latest(): Promise<number>;
  /**
   * Forgets deliveries received before `receivedBefore` (all but those still to do) and expired markers, at most `limit`
   * of each; returns how many rows went. What came just now may not be seen yet.
   */
  prune(options: { receivedBefore: number; now: number; limit: number }): Promise<number>;
  /**
   * While the store takes more than `maxBytes`: forgets the oldest bodies, no more than it takes, and when there are no
   * more the oldest facts, at most `limit`, never of what is still to do. Returns how many went: call again until none does.
   */
  shrink(options: { maxBytes: number; limit: number }): Promise<number>;
  /** Acknowledged and not yet where lists and searches look, in bytes. */
  readonly waitingBytes: number;
  /** What keeps it from getting there, though more is accepted; undefined while nothing does. */
  readonly filingFailure: unknown;
  /** Waits for what `note` gathered. */
  flush(): Promise<void>;
}
