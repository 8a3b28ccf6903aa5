/** A value that SQLite can bind. */
export type SqlValue = string | number | null | Uint8Array;

/** A statement's name in `CommitterStart.statements` and its values in parameter order. */
export type Step = readonly [statement: string, values: readonly SqlValue[]];

/** One atomic write. With `guarded`, the other steps are skipped when the first one changes no row. */
export interface Unit {
  guarded: boolean;
  steps: readonly Step[];
}

export interface CommitterStart {
  file: string;
  statements: Readonly<Record<string, string>>;
  /** Folder of the journal that is recovered before the first request; undefined if there is none to recover. */
  recover: string | undefined;
  /** Set to a value other than 0 during shutdown. A locked database then fails at once. */
  stopWaiting: Int32Array;
}

/** A value sent to the thread. Bytes are packed into one buffer and referenced by offset and length. */
export type PackedValue = string | number | null | readonly [offset: number, length: number];

/** A unit as a flat list: `guarded` as 1 or 0, then statement names and values alternating. */
export type PackedUnit = readonly [guarded: 0 | 1, ...rest: Array<string | readonly PackedValue[]>];

/** A range of whole frames in a journal file. */
export interface JournalRange {
  file: string;
  /** Descriptor that is open for reading. The file's name may already refer to another file. */
  fd: number;
  from: number;
  to: number;
}

/**
 * A batch (`units` is the JSON of PackedUnit[]), a journal range, a marker query, or the shutdown. Text crosses threads
 * in one copy; cloning objects took a fifth of the cost of accepting a delivery.
 */
export type CommitterRequest =
  | { units: string; bytes: ArrayBuffer }
  | { apply: JournalRange }
  | { markers: MarkerRange }
  | { close: true };

/** Requests at most `limit` markers with ids above `after` and up to `until`. */
export interface MarkerRange {
  after: number;
  until: number;
  limit: number;
}

/** Number of digest bytes that the in-memory marker index stores. */
export const MARKER_DIGEST_BYTES = 8;

/** Markers ordered by id, each with the first 64 bits of its digest. The reply is empty when none are left. */
export interface MarkersReply {
  ids: Float64Array<ArrayBuffer>;
  digests: Uint8Array<ArrayBuffer>;
  failure?: Failure;
}

export interface Failure {
  message: string;
  code: string | undefined;
}

/** For each unit in request order, the number of rows that its first step changed, and the rowid that it inserted. */
export interface BatchReply {
  results: number[];
  /** Failed units by index; their results are meaningless. */
  failures: Array<[place: number, failure: Failure]>;
}

/** Progress of applying the journal. After a failure, the range may be partly applied. */
export interface ApplyReply {
  /** Sequence number of the last applied frame. */
  applied: number;
  failure?: Failure;
}

/** Result of a journal recovery. */
export interface Recovered {
  /** Number of units applied. */
  units: number;
  /**
   * Folder to which all files were moved because parts are missing or unreadable. An interrupted last write does not
   * count as missing.
   */
  quarantine: string | undefined;
  /** Names of files with a damaged header copy that the second copy replaced. */
  damagedHeaders: string[];
}

/** The thread's first message; every later one answers a request, in order. */
export type Ready = { ready: Recovered } | { failure: Failure };
