import type { DeliveryStatus } from '../../contracts/index.ts';
import type { MaybePromise } from '../../kit/data/maybe-promise.ts';

/** A received delivery, before it is stored. Times in epoch ms. */
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
  /** JSON, with secrets masked. */
  headers: string;
  body: Uint8Array | null;
  /** Size of the body as received, whether or not it is stored. */
  bodyBytes: number;
  mode: 'sync' | 'async';
  /** What created the delivery: a sender's request, an operator's sample or a replay. */
  origin: 'sender' | 'sample' | 'replay';
  /** The delivery that this one replays. */
  replayOf: string | null;
  /** Deliveries of one endpoint with the same key run one after another. */
  orderKey: string | null;
}

/** A stored delivery. */
export interface DeliveryRecord extends NewDelivery {
  /** Write order over all namespaces; the cursor of lists and streams. */
  position: number;
  status: DeliveryStatus;
  httpStatus: number | null;
  /** The pipeline's step results, serialized by the domain. */
  steps: string;
  /** The handler's CommandResult or the failure, as JSON; null until finished. */
  outcome: string | null;
  durationMs: number | null;
  attempts: number;
  /** When a `retrying` delivery runs again. */
  nextAttemptAt: number | null;
  /** The latest replay of this delivery. */
  replayedBy: string | null;
  /** Digest of the idempotency marker it claimed; a replay that succeeds completes that marker. */
  marker: Uint8Array | null;
}

/** Outcome of one run of a delivery. */
export interface DeliveryEnd {
  status: DeliveryStatus;
  httpStatus: number;
  /** Appended to the delivery's steps. */
  steps: string;
  outcome: string | null;
  durationMs: number;
  /** Only set with `retrying`. */
  nextAttemptAt?: number | null;
}

/**
 * The dedupe marker of a delivery id. `pending` belongs to a running sync delivery and expires with its
 * lease, so a gateway crash does not block the id for 7 days; `done` lasts the idempotency window.
 */
export type MarkerState = 'pending' | 'done';

export interface MarkerClaim {
  key: string;
  /** When a `pending` claim (sync) or a `done` one (async) expires. */
  expiresAt: number;
}

/**
 * `begun`: the caller owns the delivery. Otherwise the state of the delivery that claimed the marker first.
 */
export type ClaimResult = 'begun' | MarkerState;

/** Filter of a list or bulk replay; all given fields must match. */
export interface DeliveryFilter {
  status?: readonly DeliveryStatus[] | undefined;
  pluginId?: string | undefined;
  event?: string | undefined;
  /** Received at or after this time. */
  since?: number | undefined;
  /** Text contained in the body, the outcome, the source or an id. */
  search?: string | undefined;
}

/** List cursor: receive time, then write order. */
export type DeliveryCursor = Pick<DeliveryRecord, 'receivedAt' | 'position'>;

export interface DeliveryPage {
  items: DeliveryRecord[];
  /** Cursor of the next page; null on the last one. */
  next: DeliveryCursor | null;
}

/**
 * Deliveries and their idempotency markers, in one store because one transaction writes both. @spec Webhook
 * delivery
 */
export interface WebhookInbox {
  /** Step 5: read-only; synchronous when the answer is in memory. Expired markers are absent. */
  seen(markerKey: string, now: number): MaybePromise<MarkerState | undefined>;
  /**
   * Sync: claims the marker as `pending` and writes the delivery as `running` in one transaction. Settles
   * once durable.
   */
  begin(delivery: NewDelivery, marker: MarkerClaim | undefined): Promise<ClaimResult>;
  /**
   * Async: claims the marker as `done` and writes the delivery as `accepted` in one transaction; durable
   * before the 202.
   */
  accept(delivery: NewDelivery, marker: MarkerClaim | undefined, steps: string): Promise<ClaimResult>;
  /**
   * Ends a run and counts it as an attempt. With `marker`, success keeps it `done` until `expiresAt`; failure
   * (`expiresAt` null) deletes it, unless another delivery claimed it, so that a redelivery runs.
   */
  finish(
    webhookId: string,
    end: DeliveryEnd,
    marker?: { key: string; expiresAt: number | null },
  ): Promise<void>;
  /** Accepts a copy of `original` regardless of its marker, and links the copy in the original. */
  replay(delivery: NewDelivery, steps: string, original: DeliveryRecord): Promise<void>;
  /** Called after a successful replay: the sender's redelivery of that id becomes a duplicate. */
  settleMarker(marker: Uint8Array, expiresAt: number): Promise<void>;
  /** Returns whether the marker with this digest is `done`. */
  isSettled(marker: Uint8Array, now: number): Promise<boolean>;
  /**
   * Records a delivery that was answered without a handler (refused, challenge, duplicate). Losable, off the
   * response path, never throws.
   */
  note(delivery: NewDelivery, end: DeliveryEnd): void;
  /** Accepted and retrying deliveries, oldest first: the dispatcher's work. Changes nothing. */
  unfinished(limit: number, afterPosition?: number): Promise<DeliveryRecord[]>;
  /**
   * Marks sync deliveries left `running` by another process as interrupted and releases their markers. Default: all;
   * otherwise those received until `receivedUntil` (epoch ms) except the given ids.
   */
  interrupt(which?: { receivedUntil: number; except: readonly string[] }): Promise<number>;
  /** Includes the body, unless it was pruned. */
  find(webhookId: string): Promise<DeliveryRecord | undefined>;
  /**
   * Newest first, or oldest first with `after`. `body` is always null, since bodies are large; `find` returns
   * it.
   */
  list(
    namespaceId: string,
    options: DeliveryFilter & {
      limit: number;
      before?: DeliveryCursor | undefined;
      after?: DeliveryCursor | undefined;
    },
  ): Promise<DeliveryPage>;
  /** Deliveries written after a position, oldest first, with bodies; for live streams. */
  after(namespaceId: string, position: number, limit: number): Promise<DeliveryRecord[]>;
  /** Returns the deliveries at these positions that have ended. */
  ended(namespaceId: string, positions: readonly number[]): Promise<DeliveryRecord[]>;
  /** The newest position, 0 when there is none. */
  latest(): Promise<number>;
  /**
   * Deletes finished deliveries received before `receivedBefore` and expired markers, at most `limit` of
   * each; returns the number of rows. Rows that are still being written may be missed.
   */
  prune(options: { receivedBefore: number; now: number; limit: number }): Promise<number>;
  /**
   * While the store exceeds `maxBytes`: deletes the oldest bodies, then the oldest records, at most `limit`,
   * but no unfinished ones. Returns the number of rows; call it again until it returns 0.
   */
  shrink(options: { maxBytes: number; limit: number }): Promise<number>;
  /** Bytes acknowledged but not yet visible to lists and searches. */
  readonly waitingBytes: number;
  /** The error that keeps acknowledged deliveries from being moved into the database, if any. */
  readonly applyFailure: unknown;
  /** Flushes the records buffered by `note`. */
  flush(): Promise<void>;
}
