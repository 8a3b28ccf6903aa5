export interface PermitRequest {
  /** Maximum number of calls in any window. */
  limit: number;
  windowMs: number;
  /** Number of calls to count. Fewer are counted if the limit leaves fewer. 0 reads the count. */
  calls: number;
}

export interface PermitGrant {
  /** Number of calls that were counted and may proceed. */
  granted: number;
  /** Number of calls that the limit still permits. */
  left: number;
  /** Time in ms until the oldest counted call expires. */
  freesInMs: number;
}

/**
 * Counts of calls by key in sliding windows, shared by all members. Each method is atomic, so members together never
 * exceed a limit. The store's clock applies. A call may count 1/60 of a window too long.
 */
export interface RateCounters {
  /** Rejects within seconds if the store cannot be reached. */
  take(key: string, request: PermitRequest): Promise<PermitGrant>;
  /** Removes one of the latest calls from the count. */
  giveBack(key: string, windowMs: number): Promise<void>;
  close(): Promise<void>;
}

/** Number of groups per window in which calls expire together, which bounds the size of a count. */
export const RATE_SLICES = 60;

/** Returns the length in ms of a group of calls that expire together. */
export function sliceMsOf(windowMs: number): number {
  return Math.ceil(windowMs / RATE_SLICES);
}
