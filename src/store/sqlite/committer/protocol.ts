/** A value as SQLite binds it. */
export type SqlValue = string | number | null | Uint8Array;

/** One statement: which of the texts given at the start, and its values in order. */
export type Step = readonly [statement: number, values: readonly SqlValue[]];

/**
 * One write, atomic. With `guarded`, the first step decides: when it changes no row, the rest is left out.
 */
export interface Unit {
  guarded: boolean;
  steps: readonly Step[];
}

export interface CommitterStart {
  file: string;
  statements: readonly string[];
}

/**
 * A value on its way to the thread. Bytes lie packed together: a pair says where they begin and how many they are.
 */
export type PackedValue = string | number | null | readonly [offset: number, length: number];

/** `guarded` as 1 or 0, then statements and their values in turn. */
export type PackedUnit = readonly [guarded: 0 | 1, ...rest: Array<number | readonly PackedValue[]>];

/**
 * A batch as two pieces of memory. `units` is the JSON of PackedUnit[]: a text crosses to a thread as one copy, while
 * the objects in it would be cloned one by one, which took a fifth of what accepting a delivery costs.
 */
export type CommitterRequest = { units: string; bytes: ArrayBuffer } | { close: true };

/** In the order of the request: rows that a unit's first step changed, and the rowid it made. */
export interface CommitterReply {
  results: number[];
  /** Those that failed, by their place; their results mean nothing. */
  failures: Array<[place: number, failure: { message: string; code: string | undefined }]>;
}
