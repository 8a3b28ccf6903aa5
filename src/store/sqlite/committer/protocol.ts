/** A value as SQLite binds it. */
export type SqlValue = string | number | null | Uint8Array;

/** One statement: the name of one of the texts given at the start, and its values in order. */
export type Step = readonly [statement: string, values: readonly SqlValue[]];

/**
 * One write, atomic. With `guarded`, the first step decides: when it changes no row, the rest is left out.
 */
export interface Unit {
  guarded: boolean;
  steps: readonly Step[];
}

export interface CommitterStart {
  file: string;
  statements: Readonly<Record<string, string>>;
  /** The folder of a journal that is taken over before anything else. */
  recover: string | undefined;
  /** Not 0 once nobody may be kept waiting any more: a locked database is a failure at once. */
  hurry: Int32Array;
}

/**
 * A value on its way to the thread. Bytes lie packed together: a pair says where they begin and how many they are.
 */
export type PackedValue = string | number | null | readonly [offset: number, length: number];

/** `guarded` as 1 or 0, then statements and their values in turn. */
export type PackedUnit = readonly [guarded: 0 | 1, ...rest: Array<string | readonly PackedValue[]>];

/** A stretch of a journal's file, whole frames. */
export interface JournalRange {
  file: string;
  /** Read by whoever reads: under its name may be another file by now. */
  fd: number;
  from: number;
  to: number;
}

/**
 * A batch as two pieces of memory: `units` is the JSON of PackedUnit[]: a text crosses to a thread as one copy, while
 * the objects in it would be cloned one by one, which took a fifth of what accepting a delivery costs. Or a stretch of
 * the journal, which the thread reads for itself.
 */
export type CommitterRequest =
  | { units: string; bytes: ArrayBuffer }
  | { apply: JournalRange }
  | { markers: MarkerRange }
  | { close: true };

/** Markers behind the id `after`, up to `until`, at most `limit`. */
export interface MarkerRange {
  after: number;
  until: number;
  limit: number;
}

/** In the order of their ids; of each the first 64 bits of its digest. Empty: there are no more. */
export interface MarkersReply {
  ids: Float64Array<ArrayBuffer>;
  digests: Uint8Array<ArrayBuffer>;
  failure?: Failure;
}

export interface Failure {
  message: string;
  code: string | undefined;
}

/** In the order of the request: rows that a unit's first step changed, and the rowid it made. */
export interface BatchReply {
  results: number[];
  /** Those that failed, by their place; their results mean nothing. */
  failures: Array<[place: number, failure: Failure]>;
}

/** How far the database has come; with a failure, a part of the stretch may be in it. */
export interface ApplyReply {
  /** The sequence of the last frame applied. */
  applied: number;
  failure?: Failure;
}

/** What taking over a journal came to. */
export interface Recovered {
  /** Units applied. */
  units: number;
  /** Where the files went of which a part was missing or unreadable: more than a write that was cut off can explain. */
  aside: string | undefined;
  /** Files of which a disk had changed a part that is there twice. */
  worn: string[];
}

/** The first message of the thread; every other one answers a request, in their order. */
export type Ready = { ready: Recovered } | { failure: Failure };
