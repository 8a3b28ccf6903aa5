import type { DeliveryStatus } from '../../contracts/index.ts';
import type { MaybePromise } from '../../kit/data/maybe-promise.ts';
import type { DeliveryHourCounts, HourRange } from './hour-counts.ts';

/** A received delivery that is not stored yet. Times are in epoch ms. */
export interface NewDelivery {
  webhookId: string;
  namespaceId: string;
  pluginId: string;
  event: string;
  instanceId: string;
  receivedAt: number;
  /** IP address of the sender. */
  source: string;
  requestId: string;
  traceId: string;
  /** Request headers as JSON, with secrets masked. */
  headers: string;
  body: Uint8Array | null;
  /** Size of the received body, even if the body itself is not stored. */
  bodyBytes: number;
  mode: 'sync' | 'async';
  /** The cause of the delivery: the request of a sender, a sample sent by an operator, or a replay. */
  origin: 'sender' | 'sample' | 'replay';
  replayOf: string | null;
  /** Deliveries of one endpoint with the same order key run one at a time. */
  orderKey: string | null;
}

export interface DeliveryRecord extends NewDelivery {
  /** Number of the delivery in write order, over all namespaces. Serves as the cursor of lists and streams. */
  position: number;
  status: DeliveryStatus;
  httpStatus: number | null;
  /** Results of the steps of the receive pipeline, in a text format that the gateway defines. */
  steps: string;
  /** The handler's result or the failure as JSON, or null until the delivery has finished. */
  outcome: string | null;
  durationMs: number | null;
  attempts: number;
  /** Time at which a delivery with the status `retrying` runs again. */
  nextAttemptAt: number | null;
  replayedBy: string | null;
  /** Digest of the idempotency marker that this delivery claimed. A successful replay sets the marker to `done`. */
  marker: Uint8Array | null;
}

/** A delivery that the dispatcher has to run. */
export interface UnfinishedDelivery extends DeliveryRecord {
  /** Whether a running transaction can still add deliveries before this position. */
  isProvisional?: boolean;
}

/** Outcome of one attempt to run a delivery. */
export interface DeliveryEnd {
  status: DeliveryStatus;
  httpStatus: number;
  /** Step results of this attempt, to append to the earlier step results of the delivery. */
  steps: string;
  outcome: string | null;
  durationMs: number;
  /** Time at which the delivery runs again. Only deliveries with the status `retrying` have this time. */
  nextAttemptAt?: number | null;
}

/**
 * State of the idempotency marker of a delivery id. A running sync delivery holds a `pending` marker. This marker
 * expires with the lease, so that a crash does not block the id for 7 days.
 */
export type MarkerState = 'pending' | 'done';

/** Log step of a delivery that was accepted on a local disk while PostgreSQL was unreachable. */
export const SPILLED_STEP = 'store=spilled@0us';

export interface MarkerClaim {
  key: string;
  /** Expiry time of the marker: the lease of a `pending` marker, or the end of the idempotency window. */
  expiresAt: number;
}

/**
 * `begun` if the caller is allowed to run the delivery. Otherwise, the state of the marker that another delivery has
 * claimed.
 */
export type ClaimResult = 'begun' | MarkerState;

/** Filter of lists and bulk replays. A delivery must match all given fields. */
export interface DeliveryFilter {
  status?: readonly DeliveryStatus[] | undefined;
  pluginId?: string | undefined;
  event?: string | undefined;
  /** Earliest receive time of the matching deliveries. */
  since?: number | undefined;
  /** Text that must occur in the body, outcome, source or ids of matching deliveries. */
  search?: string | undefined;
}

/** Cursor of a list that is ordered by receive time, then by write order. */
export type DeliveryCursor = Pick<DeliveryRecord, 'receivedAt' | 'position'>;

export interface DeliveryPage {
  items: DeliveryRecord[];
  next: DeliveryCursor | null;
}

/** Store of deliveries and their idempotency markers. @spec Webhook delivery */
export interface WebhookInbox {
  /**
   * Returns the state of an unexpired marker without claiming the marker. The result is synchronous if no database
   * lookup is needed.
   */
  seen(markerKey: string, now: number): MaybePromise<MarkerState | undefined>;
  /**
   * Claims the marker of a sync delivery as `pending` and stores the delivery as `running`. `owner` is the fence token
   * of the member that runs the handler.
   */
  begin(delivery: NewDelivery, marker: MarkerClaim | undefined, owner?: number): Promise<ClaimResult>;
  /**
   * Claims the marker of an async delivery as `done` and stores the delivery as `accepted`. For `spilled` deliveries,
   * the caller must not start the handler, because only this machine has the delivery. The original of `replayOf`
   * records the id of the delivery.
   */
  accept(
    delivery: NewDelivery,
    marker: MarkerClaim | undefined,
    steps: string,
  ): Promise<ClaimResult | 'spilled'>;
  /**
   * Ends one attempt of a delivery. A given `marker` becomes `done` until `expiresAt`. If `expiresAt` is null, the
   * marker is deleted, so that a redelivery runs again.
   */
  finish(
    webhookId: string,
    end: DeliveryEnd,
    marker?: { key: string; expiresAt: number | null },
  ): Promise<void>;
  /**
   * Makes a running sync delivery an async one, whose sender is answered while the handler continues. The marker
   * becomes `done`. If the process ends before the handler, `resume` makes the delivery run again. Has no effect on a
   * delivery that has ended.
   */
  handOver(webhookId: string, steps: string, marker?: MarkerClaim): Promise<void>;
  /** Accepts the async deliveries that ended processes left `running`. Returns their number. */
  resume(): Promise<number>;
  /**
   * Accepts a copy of `original` even if another delivery has claimed the copy's marker. Records the copy's id in
   * `original`.
   */
  replay(delivery: NewDelivery, steps: string, original: DeliveryRecord): Promise<void>;
  /** Sets the marker of a replayed delivery to `done`, so that a redelivery by the sender counts as a duplicate. */
  settleMarker(marker: Uint8Array, expiresAt: number): Promise<void>;
  isSettled(marker: Uint8Array, now: number): Promise<boolean>;
  /**
   * Records a refused delivery, a challenge or a duplicate. Never throws or delays the response. A crash can lose the
   * record.
   */
  note(delivery: NewDelivery, end: DeliveryEnd): void;
  /**
   * Returns `accepted` and `retrying` deliveries in write order, for the dispatcher. A delivery with an order key is
   * returned when no earlier one can be added any more.
   */
  unfinished(limit: number, afterPosition?: number): Promise<UnfinishedDelivery[]>;
  /**
   * Marks sync deliveries that ended processes left `running` as interrupted, and releases their markers. The first
   * process of a store must call this method, after `resume`, before it receives deliveries.
   */
  interrupt(): Promise<number>;
  /** Returns the delivery with its body, unless the body was deleted to free space. */
  find(webhookId: string): Promise<DeliveryRecord | undefined>;
  /**
   * Returns deliveries newest first, or oldest first if `after` is given. Their `body` is always null, because bodies
   * are large.
   */
  list(
    namespaceId: string,
    options: DeliveryFilter & {
      limit: number;
      before?: DeliveryCursor | undefined;
      after?: DeliveryCursor | undefined;
    },
  ): Promise<DeliveryPage>;
  /** Returns the newest deliveries of a trace, without bodies. */
  ofTrace(namespaceId: string, traceId: string, limit: number): Promise<DeliveryRecord[]>;
  /** Counts the deliveries that were received in the hours from `from` to `to`. Hours without deliveries are missing. */
  countByHour(namespaceId: string, range: HourRange): Promise<DeliveryHourCounts[]>;
  /** Returns deliveries that were written after a position, oldest first and with bodies, for live streams. */
  after(namespaceId: string, position: number, limit: number): Promise<DeliveryRecord[]>;
  /** Returns the ended deliveries at the given positions. */
  ended(namespaceId: string, positions: readonly number[]): Promise<DeliveryRecord[]>;
  /** Returns the highest position from which a stream can start without a gap, or 0 when there is no delivery. */
  latest(): Promise<number>;
  /** Returns the highest position of the stored deliveries. Open transactions can still add deliveries before it. */
  newest(): Promise<number>;
  /**
   * Deletes at most `limit` finished deliveries received before `receivedBefore`, and at most `limit` expired markers.
   * Returns the number of deleted rows.
   */
  prune(options: { receivedBefore: number; now: number; limit: number }): Promise<number>;
  /**
   * Deletes the oldest bodies, and then the oldest finished deliveries, if the store exceeds `maxBytes`. Returns the
   * number of changed rows. Callers repeat the call until the result is 0.
   */
  shrink(options: { maxBytes: number; limit: number }): Promise<number>;
  /**
   * Bytes of acknowledged deliveries that are not in the database yet. Lists and searches do not show these deliveries.
   */
  readonly waitingBytes: number;
  /** The error that currently prevents acknowledged deliveries from being moved into the database. */
  readonly applyFailure: unknown;
  /** Writes the records that `note` has buffered. */
  flush(): Promise<void>;
}
