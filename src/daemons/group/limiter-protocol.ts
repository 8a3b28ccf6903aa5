/**
 * Messages between the limiters of the primary and its siblings. `name` is the limiter that counts the key. Times are
 * monotonic ms, which all processes of a machine share.
 */

/** Request `limit.take` from a sibling to the primary. */
export interface TakeQuestion {
  name: string;
  key: string;
  limit: number;
  windowMs: number;
  exact: boolean;
  maxKeys?: number;
  /** Number of calls that wait for the verdict. */
  want: number;
  /** Number of unused permits of the previous loan, which the sibling returns with this request. */
  unused: number;
}

export interface TakeAnswer {
  /** Number of permits granted. Permits in excess of `want` are a loan. 0 means that the limit is reached. */
  granted: number;
  /** Number of permits that remain at the primary after the loan. */
  left: number;
  /** Time at which the primary counted the permits. A recall identifies the loan by this time. */
  countedAt: number;
  /** Time at which the oldest counted call leaves the window of the limit. */
  freesAt: number;
}

/** Request `limit.back`, with which a sibling returns the permit of a counted call to the primary. */
export interface BackQuestion {
  name: string;
  key: string;
}

/** Request `limit.recall` from the primary to a sibling. The reply is the number of unused permits of the loan. */
export interface RecallQuestion {
  name: string;
  key: string;
  countedAt: number;
}

/** Message `limit.full` from the primary to a sibling: an exact limiter has reached its limit until `endsAt`. */
export interface FullQuestion {
  name: string;
  key: string;
  endsAt: number;
}
