import type { SecretKey } from './webhook-secrets.ts';

/** Kinds of data that one process caches and other processes can change. */
export type FeedTopic =
  | 'revocations'
  | 'secrets'
  | 'pauses'
  | 'queues'
  | 'sources'
  | 'static-tokens'
  | 'endpoints'
  | 'hosts'
  | 'access';

/**
 * Scopes of the platform cache whose changes are added to the feed, with their topics. Each change adds the entry's key
 * to the feed in the same transaction.
 */
export const FEED_SCOPES = {
  'webhook-pause': 'pauses',
  sources: 'sources',
  'static-token-revisions': 'static-tokens',
} as const satisfies Record<string, FeedTopic>;

declare const cursorBrand: unique symbol;

/** Position in the feed. The format of the cursor is private to the store driver. */
export type FeedCursor = string & { [cursorBrand]: true };

/** A committed change of cached data. Readers load the new data by `key`. */
export interface FeedChange {
  topic: FeedTopic;
  key: string;
}

export interface FeedPage {
  /** Changes in the order in which readers can apply the changes. The same change can occur several times. */
  changes: FeedChange[];
  /** Cursor for the next call. */
  cursor: FeedCursor;
  /** Whether the feed contains all changes after the given cursor. If false, the reader must load all data again. */
  isComplete: boolean;
}

/**
 * Feed of changes to cached data. Each change is added in the transaction that changes the data. A cursor never skips
 * an open transaction, so late commits are not lost.
 */
export interface FeedStore {
  /** Returns the cursor for a first `read`. Data loaded after this call contains every change before the cursor. */
  begin(): Promise<FeedCursor>;
  /** Returns at most `limit` changes after the cursor. */
  read(after: FeedCursor, limit: number): Promise<FeedPage>;
  /** Returns a cursor that comes after all changes committed before the call. */
  latest(): Promise<FeedCursor>;
  /** Records the position up to which the member with this fence token has read the feed. */
  noteRead(fence: number, cursor: FeedCursor): Promise<void>;
  /** Returns the fence tokens of live members that have not read up to the cursor yet. */
  behind(cursor: FeedCursor): Promise<number[]>;
  /** Deletes changes that were made before the time `before`, in epoch ms. Returns the number of deleted changes. Drivers
   * may delete more than `limit`. */
  prune(before: number, limit?: number): Promise<number>;
}

/** Returns the feed key of a webhook secret as JSON, because the fields can contain any separator. */
export function secretFeedKey({ namespaceId, pluginId, event, instanceId }: SecretKey): string {
  return JSON.stringify([namespaceId, pluginId, event, instanceId]);
}
