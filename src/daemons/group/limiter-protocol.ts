/** Topics of `shared-limiters.ts`. A key is of the limiter `name`; times in epoch ms. */

/** Sibling to primary, `limit.take`. */
export interface TakeQuestion {
  name: string;
  key: string;
  limit: number;
  windowMs: number;
  exact: boolean;
  /** Calls that wait for the verdict. */
  want: number;
}

export interface TakeAnswer {
  /** Calls let through: for those that wait, the rest lent ahead. 0: the limit is reached. */
  granted: number;
  /** Left at the primary after this. */
  left: number;
  endsAt: number;
}

/** Sibling to primary, `limit.back`: a call that was counted is taken back. */
export interface BackQuestion {
  name: string;
  key: string;
}

/** Primary to sibling, `limit.recall`: answers how many of those lent for this window were not used. */
export interface RecallQuestion {
  name: string;
  key: string;
  endsAt: number;
}

/** Primary to sibling, `limit.full`: the limit of an exact limiter is reached. */
export interface FullQuestion {
  name: string;
  key: string;
  endsAt: number;
}
