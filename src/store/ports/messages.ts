import type { MessageStatus } from '../../contracts/index.ts';

/** A message to store with its deliveries. */
export interface NewStoredMessage {
  /** Ids begin with the time of their creation, so that they sort by it. */
  id: string;
  namespaceId: string;
  application: string | null;
  type: string;
  timestamp: number;
  createdAt: number;
  /** The body of each request. */
  body: Uint8Array;
  traceId: string;
  endpointIds: readonly string[];
  /** Null without an idempotency key. */
  key: { digest: Uint8Array; content: Uint8Array; expiresAt: number } | null;
}

/** Result of a publish. `conflict`: the key was used for other content. */
export interface StoredMessageResult {
  outcome: 'stored' | 'duplicate' | 'conflict';
  id: string;
  /** Values of the first message with the key. They are 0 if it was pruned. */
  timestamp: number;
  endpoints: number;
}

export interface MessageCountsRecord {
  waiting: number;
  retrying: number;
  succeeded: number;
  dead: number;
  cancelled: number;
}

export interface MessageRecord {
  id: string;
  namespaceId: string;
  application: string | null;
  type: string;
  timestamp: number;
  createdAt: number;
  bodyBytes: number;
  traceId: string;
  counts: MessageCountsRecord;
}

export interface MessageDeliveryRecord {
  messageId: string;
  endpointId: string;
  status: MessageStatus;
  attempts: number;
  nextAttemptAt: number | null;
  lastStatus: number | null;
  lastError: string | null;
  endedAt: number | null;
}

export interface MessageAttemptRecord {
  messageId: string;
  endpointId: string;
  /** Application of the message. */
  application: string | null;
  type: string;
  number: number;
  trigger: 'first' | 'retry' | 'replay' | 'test';
  startedAt: number;
  durationMs: number;
  succeeded: boolean;
  responseStatus: number | null;
  excerpt: string | null;
  error: string | null;
  nextAttemptAt: number | null;
}

/** A delivery to attempt. `tries` counts the attempts since the publish or the last replay. */
export interface DueDelivery {
  messageId: string;
  endpointId: string;
  attempts: number;
  tries: number;
  isReplay: boolean;
  nextAttemptAt: number | null;
}

/** Content of a message that is sent. */
export interface MessageContent {
  id: string;
  application: string | null;
  type: string;
  createdAt: number;
  traceId: string;
  body: Uint8Array;
}

/** End of an attempt. A delivery that is no longer unfinished keeps its status. */
export interface EndedAttempt extends Omit<MessageAttemptRecord, 'type' | 'application'> {
  status: Exclude<MessageStatus, 'waiting'>;
  tries: number;
  endedAt: number | null;
}

/** End of a delivery without a request. It adds no attempt, so `attempts` and `lastStatus` of the delivery stay. */
export interface UnsentEnd {
  messageId: string;
  endpointId: string;
  status: Exclude<MessageStatus, 'waiting' | 'retrying'>;
  error: string;
  endedAt: number;
}

export const isUnsent = (end: EndedAttempt | UnsentEnd): end is UnsentEnd => !('number' in end);

/** Change of an endpoint's failures, stored with the ends of the attempts that caused it. */
export interface FailureChange {
  endpointId: string;
  failingSince: number | null;
}

export interface EndpointWork {
  endpointId: string;
  /** Id of the oldest message that waits for its first attempt. */
  oldestWaiting: string | null;
  nextRetryAt: number | null;
}

export interface MessageFilter {
  namespaceId: string;
  type?: string | undefined;
  application?: string | undefined;
  endpointId?: string | undefined;
  status?: MessageStatus | undefined;
  traceId?: string | undefined;
  /** Only messages with an id of at least `from`. */
  from?: string | undefined;
  /** Only messages with a smaller id. */
  before?: string | undefined;
  limit: number;
}

/** A page of a list. `next` is the last examined id, or null at the end. A page can have fewer items than allowed. */
export interface MessagePage {
  items: MessageRecord[];
  next: string | null;
}

/** The newest attempts of an endpoint. */
export interface RecentAttempts {
  endpointId: string;
  attempts: number;
  failed: number;
}

/** Finished deliveries to replay, in the order of their messages. */
export interface ReplaySelection {
  namespaceId: string;
  endpointId?: string | undefined;
  type?: string | undefined;
  application?: string | undefined;
  statuses: readonly MessageStatus[];
  /** Only messages with a larger id. */
  after: string;
  /** Only messages with a smaller id. */
  before: string;
  /** Only deliveries that ended until this time, so that replayed deliveries never match again. */
  endedUntil: number;
  limit: number;
}

export interface ReplayPage {
  items: Array<{ messageId: string; endpointId: string; application: string | null }>;
  /** Value of `after` for the next page, or null at the end. */
  next: string | null;
}

export interface AttemptFilter {
  namespaceId: string;
  messageId?: string | undefined;
  endpointId?: string | undefined;
  succeeded?: boolean | undefined;
  /** Only attempts that come after this one in the list, which begins with the newest. */
  after?: { startedAt: number; messageId: string; endpointId: string; number: number } | undefined;
  limit: number;
}

/** Messages, their deliveries to endpoints, and the attempts. Changes are durable when their promise resolves. */
export interface MessageStore {
  publish(message: NewStoredMessage): Promise<StoredMessageResult>;
  /** Stores a message with one attempt that was made already. */
  addTest(message: NewStoredMessage, attempt: EndedAttempt): Promise<void>;
  endAttempts(
    ends: ReadonlyArray<EndedAttempt | UnsentEnd>,
    failures: readonly FailureChange[],
  ): Promise<void>;

  /** Returns the endpoints that have unfinished deliveries, also those that are disabled or deleted. */
  work(): Promise<EndpointWork[]>;
  /** Returns the number of unfinished deliveries, at most `max`. */
  countUnfinished(max: number): Promise<number>;
  /** Returns deliveries that wait for their first attempt, in the order of their messages. */
  waiting(endpointId: string, limit: number): Promise<DueDelivery[]>;
  /** Returns deliveries whose next attempt is due at `now`, by due time. */
  retries(endpointId: string, now: number, limit: number): Promise<DueDelivery[]>;
  nextRetryAt(endpointId: string, after: number): Promise<number | null>;
  /** Returns the contents of the first messages whose bodies have at most `maxBytes` together, and at least one. */
  contents(ids: readonly string[], maxBytes: number): Promise<MessageContent[]>;
  /** Ends unfinished deliveries of an endpoint. Returns the number of ended deliveries. */
  endUnfinished(
    endpointId: string,
    end: { status: 'dead' | 'cancelled'; error: string; at: number; limit: number },
  ): Promise<number>;

  list(filter: MessageFilter): Promise<MessagePage>;
  find(
    namespaceId: string,
    id: string,
  ): Promise<(MessageRecord & { body: Uint8Array; deliveries: MessageDeliveryRecord[] }) | undefined>;
  attempts(filter: AttemptFilter): Promise<MessageAttemptRecord[]>;
  /** Counts the newest attempts of each endpoint, at most `max`. Reads only indexes. */
  recentAttempts(endpointIds: readonly string[], max: number): Promise<RecentAttempts[]>;
  replayable(selection: ReplaySelection): Promise<ReplayPage>;
  /**
   * Lets finished deliveries wait again. `add` also adds deliveries that do not exist. Returns the changed deliveries.
   */
  replay(
    namespaceId: string,
    deliveries: ReadonlyArray<{ messageId: string; endpointId: string }>,
    options: { endedUntil: number; add: boolean },
  ): Promise<DueDelivery[]>;

  /**
   * Deletes messages with an id between `after` and `before` whose deliveries are finished. Returns the last examined
   * id, or null at the end.
   */
  prune(before: string, after: string, limit: number): Promise<{ pruned: number; next: string | null }>;
  pruneKeys(now: number, limit: number): Promise<number>;
}
