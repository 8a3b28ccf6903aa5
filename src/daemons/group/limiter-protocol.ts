/** Topics of `shared-limiters.ts`. A key is of the limiter `name`; times in epoch ms. */

/** Sibling to primary, `limit.take`. */
export interface TakeQuestion {
  name: string;
  key: string;
  limit: number;
  windowMs: number;
  exact: boolean;
  maxKeys?: number;
  /** Calls that wait for the verdict. */
  want: number;
  /** Calls lent before that were not used: they lapse after a moment. */
  unused: number;
}

export interface TakeAnswer {
  /** Calls let through: for those that wait, the rest lent ahead. 0: the limit is reached. */
  granted: number;
  /** Left at the primary after this. */
  left: number;
  /** When the primary counted them: what a recall names. */
  countedAt: number;
  /** When the oldest counted call expires. */
  freesAt: number;
}

/** Sibling to primary, `limit.back`: a call that was counted is taken back. */
export interface BackQuestion {
  name: string;
  key: string;
}

/** Primary to sibling, `limit.recall`: answers how many of those counted at that time were not used. */
export interface RecallQuestion {
  name: string;
  key: string;
  countedAt: number;
}

/** Primary to sibling, `limit.full`: the limit of an exact limiter is reached until then. */
export interface FullQuestion {
  name: string;
  key: string;
  endsAt: number;
}
