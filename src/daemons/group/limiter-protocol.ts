/** Messages of `shared-limiters.ts`. A key belongs to the limiter `name`; times in epoch ms. */

/** Sibling to primary, `limit.take`. */
export interface TakeQuestion {
  name: string;
  key: string;
  limit: number;
  windowMs: number;
  exact: boolean;
  maxKeys?: number;
  /** Number of calls waiting for the verdict. */
  want: number;
  /** Unused permits of the previous loan, which expire after a moment. */
  unused: number;
}

export interface TakeAnswer {
  /** Permits granted: for the waiting calls, the rest as a loan. 0: the limit is reached. */
  granted: number;
  /** Permits left at the primary afterwards. */
  left: number;
  /** When the primary counted them; identifies the loan in a recall. */
  countedAt: number;
  /** When the oldest counted call expires. */
  freesAt: number;
}

/** Sibling to primary, `limit.back`: returns the permit of a counted call. */
export interface BackQuestion {
  name: string;
  key: string;
}

/** Primary to sibling, `limit.recall`: the reply is the number of unused permits of that loan. */
export interface RecallQuestion {
  name: string;
  key: string;
  countedAt: number;
}

/** Primary to sibling, `limit.full`: an exact limiter is at its limit until then. */
export interface FullQuestion {
  name: string;
  key: string;
  endsAt: number;
}
