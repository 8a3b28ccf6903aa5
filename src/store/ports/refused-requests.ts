import type { SecretKey } from './webhook-secrets.ts';

/** Encrypted request of a delivery that was refused with 401. */
export interface RefusedRequest extends SecretKey {
  webhookId: string;
  /** Time of receipt in epoch ms. */
  receivedAt: number;
  /** URL, headers and body. */
  sealed: string;
}

/** Maximum sizes in bytes of the encrypted requests. */
export interface RefusedRequestLimits {
  webhookBytes: number;
  totalBytes: number;
}

/** Requests of refused deliveries, for a replay after the cause is corrected. @spec docs/webhooks.md "Replay" */
export interface RefusedRequestStore {
  /**
   * Stores requests, then deletes the oldest ones above the limits. Above the total, the namespace with the most bytes
   * loses its oldest requests, so that no tenant displaces the requests of another.
   */
  add(requests: readonly RefusedRequest[], limits: RefusedRequestLimits): Promise<void>;
  find(webhookId: string): Promise<RefusedRequest | undefined>;
  delete(webhookId: string): Promise<void>;
  /** Deletes at most `limit` requests received before a time. Returns the number of deleted requests. */
  prune(receivedBefore: number, limit: number): Promise<number>;
}
