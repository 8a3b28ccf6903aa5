/** A value as SQLite binds it; bytes arrive as Uint8Array and are bound as they are. */
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

/** What became of a unit: rows that its first step changed and the rowid it made, or why it failed. */
export type UnitOutcome =
  | { changes: number; rowid: number }
  | { error: { message: string; code: string | undefined } };

export type CommitterRequest = { units: Unit[] } | { close: true };
/** One for each request, in order. */
export type CommitterReply = UnitOutcome[];
