export type SqlValue = string | number | null | Uint8Array;

/** Name of a statement in `CommitterStart.statements`, and the values of its parameters in order. */
export type Step = readonly [statement: string, values: readonly SqlValue[]];

/**
 * An atomic write, as a list of steps. If `guarded` is set and the first step changes no row, the other steps are
 * skipped.
 */
export interface Unit {
  guarded: boolean;
  steps: readonly Step[];
}

export interface CommitterStart {
  file: string;
  statements: Readonly<Record<string, string>>;
  /** Folder of a journal to recover before the first request, or undefined if no journal is recovered. */
  recover: string | undefined;
  /** A value other than 0 means that the process is stopping. Waiting for a locked database then ends with an error. */
  stopWaiting: Int32Array;
}

/** A value as sent to the thread. Byte values are put into one buffer and replaced by their offset and length in it. */
export type PackedValue = string | number | null | readonly [offset: number, length: number];

/** A write as a flat list: `guarded` as 1 or 0, followed by pairs of a statement name and its values. */
export type PackedUnit = readonly [guarded: 0 | 1, ...rest: Array<string | readonly PackedValue[]>];

/** A range of a journal file that starts and ends between two frames. */
export interface JournalRange {
  file: string;
  /**
   * Open descriptor of the file. The path alone is not sufficient, because another file may have that path meanwhile.
   */
  fd: number;
  from: number;
  to: number;
}

/**
 * Request to commit a batch, apply a journal range, read markers or shut down. `units` is JSON of an array of
 * PackedUnit, because cloning objects between threads is slower.
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

/** Markers ordered by id, with the first MARKER_DIGEST_BYTES of each digest. Empty when no more markers exist. */
export interface MarkersReply {
  ids: Float64Array<ArrayBuffer>;
  digests: Uint8Array<ArrayBuffer>;
  failure?: Failure;
}

export interface Failure {
  message: string;
  code: string | undefined;
}

/**
 * Two numbers per write in request order: the rows that its first step changed, and the rowid that the step inserted.
 */
export interface BatchReply {
  results: number[];
  /** Errors of failed writes by their index. The two result numbers of failed writes have no meaning. */
  failures: Array<[place: number, failure: Failure]>;
}

/** Progress of applying a journal range. After a failure, only part of the range may be applied. */
export interface ApplyReply {
  applied: number;
  failure?: Failure;
}

export interface Recovered {
  units: number;
  /**
   * Folder to which all files were moved, if data is missing or unreadable. An interrupted last write does not count,
   * because it was never acknowledged.
   */
  quarantine: string | undefined;
  /** Files in which one of the two copies of the header is damaged. */
  damagedHeaders: string[];
}

/** First message of the thread. Each later message answers one request, in order. */
export type Ready = { ready: Recovered } | { failure: Failure };
