/** A value that SQLite can bind. */
export type SqlValue = string | number | null | Uint8Array;

/** A statement, by its name in `CommitterStart.statements`, and its values in order. */
export type Step = readonly [statement: string, values: readonly SqlValue[]];

/** One atomic write. With `guarded`, the other steps are skipped when the first one changes no row. */
export interface Unit {
  guarded: boolean;
  steps: readonly Step[];
}

export interface CommitterStart {
  file: string;
  statements: Readonly<Record<string, string>>;
  /** Folder of a journal that is recovered before the first request; undefined: none. */
  recover: string | undefined;
  /** Another value than 0 during shutdown: a locked database then fails at once. */
  stopWaiting: Int32Array;
}

/** A value sent to the thread. Bytes are packed into one buffer and referenced by offset and length. */
export type PackedValue = string | number | null | readonly [offset: number, length: number];

/** `guarded` as 1 or 0, then statement names and values alternating. */
export type PackedUnit = readonly [guarded: 0 | 1, ...rest: Array<string | readonly PackedValue[]>];

/** A range of whole frames in a journal file. */
export interface JournalRange {
  file: string;
  /** Descriptor that is open for reading. The name may point to another file by now. */
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

/** Markers with ids above `after`, up to `until`, at most `limit`. */
export interface MarkerRange {
  after: number;
  until: number;
  limit: number;
}

/** Ordered by id, each with the first 64 bits of its digest. Empty: none are left. */
export interface MarkersReply {
  ids: Float64Array<ArrayBuffer>;
  digests: Uint8Array<ArrayBuffer>;
  failure?: Failure;
}

export interface Failure {
  message: string;
  code: string | undefined;
}

/** In request order: rows that each unit's first step changed, and the rowid it inserted. */
export interface BatchReply {
  results: number[];
  /** Failed units by index; their results are meaningless. */
  failures: Array<[place: number, failure: Failure]>;
}

/** Progress of applying the journal. After a failure, the range may be partly applied. */
export interface ApplyReply {
  /** The sequence of the last frame applied. */
  applied: number;
  failure?: Failure;
}

/** Result of a journal recovery. */
export interface Recovered {
  /** Number of units applied. */
  units: number;
  /** Folder of the files with missing or unreadable parts. A last write that was interrupted does not count. */
  quarantine: string | undefined;
  /** Files with a corrupted part that a second copy restored. */
  damagedHeaders: string[];
}

/** The thread's first message; every later one answers a request, in order. */
export type Ready = { ready: Recovered } | { failure: Failure };
