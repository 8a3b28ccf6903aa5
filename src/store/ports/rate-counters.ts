export interface PermitRequest {
  /** Maximum number of calls in any window. */
  limit: number;
  windowMs: number;
  /** Number of calls to count. Calls above the limit are not counted. With 0, the count stays unchanged. */
  calls: number;
}

export interface PermitGrant {
  /** Number of calls that were counted. These calls are allowed to proceed. */
  granted: number;
  /** Number of calls that the limit still permits. */
  left: number;
  /** Time in ms until the oldest counted call expires. */
  freesInMs: number;
}

/**
 * Counts calls by key in sliding windows. All processes share the counts and together never exceed a limit. A call can
 * count for up to 1/60 of a window too long.
 */
export interface RateCounters {
  /** Counts calls up to the limit. Rejects within seconds if the store cannot be reached. */
  take(key: string, request: PermitRequest): Promise<PermitGrant>;
  /** Removes one of the latest calls from the count. */
  giveBack(key: string, windowMs: number): Promise<void>;
  close(): Promise<void>;
}

/** Number of time slices per window. The calls of a slice expire together. */
export const RATE_SLICES = 60;

/** Returns the length of a time slice in ms. The calls of a slice expire together. */
export function sliceMsOf(windowMs: number): number {
  return Math.ceil(windowMs / RATE_SLICES);
}
