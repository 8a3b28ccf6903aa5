/** A value as SQLite binds it. */
export type SqlValue = string | number | null | Uint8Array;

/** The same on its way to the thread: bytes lie packed together, and a pair says where they begin and how many they are. */
export type PackedValue = string | number | null | readonly [offset: number, length: number];

/** One statement: which of the texts given at the start, and its values in order. */
export type Step = readonly [statement: number, values: readonly SqlValue[]];

/**
 * One write, atomic. With `guarded`, the first step decides: when it changes no row, the rest is left out.
 */
export interface Unit {
  guarded: boolean;
  steps: readonly Step[];
}

export interface PackedUnit {
  guarded: boolean;
  steps: ReadonlyArray<readonly [statement: number, values: readonly PackedValue[]]>;
}

export interface CommitterStart {
  file: string;
  statements: readonly string[];
}

/** What became of a unit: rows that its first step changed and the rowid it made, or why it failed. */
export type UnitOutcome =
  | { changes: number; rowid: number }
  | { error: { message: string; code: string | undefined } };

export type CommitterRequest = { units: PackedUnit[]; bytes: ArrayBuffer } | { close: true };
/** One for each request, in order. */
export type CommitterReply = UnitOutcome[];
