import type { SecretKey } from './webhook-secrets.ts';

/** Kinds of data that processes cache and that other processes may change. */
export type FeedTopic = 'revocations' | 'secrets' | 'pauses' | 'static-tokens' | 'plugins' | 'hosts';

/**
 * Scopes of the platform cache that belong to a topic. Each change of an entry in such a scope adds a change to the
 * feed in the same transaction, with the key of the entry.
 */
export const FEED_SCOPES = {
  'webhook-pause': 'pauses',
  'static-token-revisions': 'static-tokens',
  'plugin-revision': 'plugins',
} as const satisfies Record<string, FeedTopic>;

declare const cursorBrand: unique symbol;

/** Position in the feed. Only its driver may interpret it. */
export type FeedCursor = string & { [cursorBrand]: true };

/** A committed change of cached data. Readers load the new data by its key. */
export interface FeedChange {
  topic: FeedTopic;
  key: string;
}

export interface FeedPage {
  /** Changes in the order in which readers may apply them. The same change may occur several times. */
  changes: FeedChange[];
  /** Cursor with which the next call continues. */
  cursor: FeedCursor;
  /** False if changes after the given cursor were pruned. The reader must then load all of its data again. */
  isComplete: boolean;
}

/**
 * Changes of cached data, which the other ports add in the transaction of the change. A cursor never passes an open
 * transaction, so its changes are returned once it commits, however late.
 */
export interface FeedStore {
  /** Returns a cursor to begin with. It precedes every change that is invisible to reads that start after the call. */
  begin(): Promise<FeedCursor>;
  /** Returns at most `limit` changes after the cursor. */
  read(after: FeedCursor, limit: number): Promise<FeedPage>;
  /** Returns a cursor that comes after all changes committed before the call. */
  latest(): Promise<FeedCursor>;
  /** Records the position up to which the member with this fence has read. */
  noteRead(fence: number, cursor: FeedCursor): Promise<void>;
  /** Returns fences of live members that have not read up to the cursor yet. */
  behind(cursor: FeedCursor): Promise<number[]>;
  /** Deletes changes older than this time, in epoch ms. Returns their number. */
  prune(before: number): Promise<number>;
}

/** Returns the feed's key of a webhook secret. It is JSON, because fields may contain any separator. */
export function secretFeedKey({ namespaceId, pluginId, event, instanceId }: SecretKey): string {
  return JSON.stringify([namespaceId, pluginId, event, instanceId]);
}
