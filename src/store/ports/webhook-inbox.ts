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
  /** Request headers as JSON, with secrets masked. */
  headers: string;
  body: Uint8Array | null;
  /** Size of the body as received, whether or not it is stored. */
  bodyBytes: number;
  mode: 'sync' | 'async';
  /** What created the delivery: a sender's request, an operator's sample or a replay. */
  origin: 'sender' | 'sample' | 'replay';
  /** Id of the delivery that this delivery replays. */
  replayOf: string | null;
  /** Deliveries of one endpoint with the same key run one after another. */
  orderKey: string | null;
}

/** A stored delivery. */
export interface DeliveryRecord extends NewDelivery {
  /** Write order over all namespaces, used as the cursor of lists and streams. */
  position: number;
  status: DeliveryStatus;
  httpStatus: number | null;
  /** Results of the pipeline's steps, serialized by the webhook domain. */
  steps: string;
  /** The handler's CommandResult or the failure, as JSON; null until the delivery has finished. */
  outcome: string | null;
  durationMs: number | null;
  attempts: number;
  /** When a `retrying` delivery is attempted again. */
  nextAttemptAt: number | null;
  /** Id of the latest replay of this delivery. */
  replayedBy: string | null;
  /** Digest of the idempotency marker that this delivery claimed. A successful replay completes that marker. */
  marker: Uint8Array | null;
}

/** Outcome of one run of a delivery. */
export interface DeliveryEnd {
  status: DeliveryStatus;
  httpStatus: number;
  /** Step results to append to those of the delivery. */
  steps: string;
  outcome: string | null;
  durationMs: number;
  /** Time of the next attempt. Set only with the status `retrying`. */
  nextAttemptAt?: number | null;
}

/**
 * The dedupe marker of a delivery id. `pending` belongs to a running sync delivery and expires with its
 * lease, so a gateway crash does not block the id for 7 days; `done` lasts the idempotency window.
 */
export type MarkerState = 'pending' | 'done';

export interface MarkerClaim {
  key: string;
  /** When the claim expires, whether it is `pending` (sync) or `done` (async). */
  expiresAt: number;
}

/** `begun` when the caller owns the delivery. Otherwise the state of the marker that another delivery claimed first. */
export type ClaimResult = 'begun' | MarkerState;

/** Filter of a list or bulk replay; all given fields must match. */
export interface DeliveryFilter {
  status?: readonly DeliveryStatus[] | undefined;
  pluginId?: string | undefined;
  event?: string | undefined;
  /** Matches deliveries received at or after this time. */
  since?: number | undefined;
  /** Matches deliveries whose body, outcome, source or ids contain this text. */
  search?: string | undefined;
}

/** List cursor, which orders deliveries by receive time and then by write order. */
export type DeliveryCursor = Pick<DeliveryRecord, 'receivedAt' | 'position'>;

export interface DeliveryPage {
  items: DeliveryRecord[];
  /** Cursor of the next page; null on the last page. */
  next: DeliveryCursor | null;
}

/**
 * Deliveries and their idempotency markers, in one store because one transaction writes both. @spec Webhook
 * delivery
 */
export interface WebhookInbox {
  /** Returns the state of an unexpired marker without claiming it. Synchronous when the answer is in memory. */
  seen(markerKey: string, now: number): MaybePromise<MarkerState | undefined>;
  /**
   * Claims the marker of a sync delivery as `pending` and writes the delivery as `running` in one transaction.
   * Settles once both are durable.
   */
  begin(delivery: NewDelivery, marker: MarkerClaim | undefined): Promise<ClaimResult>;
  /**
   * Claims the marker of an async delivery as `done` and writes the delivery as `accepted` in one transaction.
   * Settles once both are durable, so that the caller may answer 202.
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
  /**
   * Marks the original's marker as `done` after a successful replay, so that a redelivery by the sender is a
   * duplicate.
   */
  settleMarker(marker: Uint8Array, expiresAt: number): Promise<void>;
  /** Returns whether the marker with this digest is `done`. */
  isSettled(marker: Uint8Array, now: number): Promise<boolean>;
  /**
   * Records a delivery that was answered without a handler (refused, challenge, duplicate). Never throws and never
   * delays the response; a crash may lose the record.
   */
  note(delivery: NewDelivery, end: DeliveryEnd): void;
  /** Returns accepted and retrying deliveries for the dispatcher, oldest first. */
  unfinished(limit: number, afterPosition?: number): Promise<DeliveryRecord[]>;
  /**
   * Marks sync deliveries that another process left `running` as interrupted, and releases their markers. `which`
   * limits this to deliveries received until `receivedUntil` (epoch ms), except the given ids.
   */
  interrupt(which?: { receivedUntil: number; except: readonly string[] }): Promise<number>;
  /** Returns the delivery with its body, unless the body was pruned. */
  find(webhookId: string): Promise<DeliveryRecord | undefined>;
  /**
   * Returns deliveries newest first, or oldest first with `after`. `body` is always null because bodies are large;
   * `find` returns the body.
   */
  list(
    namespaceId: string,
    options: DeliveryFilter & {
      limit: number;
      before?: DeliveryCursor | undefined;
      after?: DeliveryCursor | undefined;
    },
  ): Promise<DeliveryPage>;
  /** Returns deliveries written after a position with their bodies, oldest first, for live streams. */
  after(namespaceId: string, position: number, limit: number): Promise<DeliveryRecord[]>;
  /** Returns the deliveries at these positions that have ended. */
  ended(namespaceId: string, positions: readonly number[]): Promise<DeliveryRecord[]>;
  /** Returns the newest position, or 0 when there is no delivery. */
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
  /** Bytes of acknowledged deliveries that lists and searches do not show yet. */
  readonly waitingBytes: number;
  /** The error that keeps acknowledged deliveries from being moved into the database, if any. */
  readonly applyFailure: unknown;
  /** Flushes the records buffered by `note`. */
  flush(): Promise<void>;
}
