export type SqlValue = string | number | null | Uint8Array;

/**
 * Step of a write: the name of a statement in `CommitterStart.statements`, and the values of the statement's
 * parameters.
 */
export type Step = readonly [statement: string, values: readonly SqlValue[]];

/** Atomic write. If `guarded` is set and the first step changes no row, the other steps are skipped. */
export interface Unit {
  guarded: boolean;
  steps: readonly Step[];
}

export interface CommitterStart {
  file: string;
  statements: Readonly<Record<string, string>>;
  /** Folder of a journal to recover before the first request, or undefined if no journal is recovered. */
  recover: string | undefined;
  /** Shared flag. A value other than 0 makes waits for a locked database fail, because the process is stopping. */
  stopWaiting: Int32Array;
}

/** SQL value, as sent to the thread. Byte values are copied into a buffer and replaced by their offset and length. */
export type PackedValue = string | number | null | readonly [offset: number, length: number];

/** Write as a flat list: `guarded` as 1 or 0, followed by pairs of a statement name and its parameter values. */
export type PackedUnit = readonly [guarded: 0 | 1, ...rest: Array<string | readonly PackedValue[]>];

/** Range of a journal file. The range starts and ends at frame boundaries. */
export interface JournalRange {
  file: string;
  /**
   * Open descriptor of the file. The path is not sufficient, because another file might have replaced the file at this
   * path.
   */
  fd: number;
  from: number;
  to: number;
}

/**
 * Request to commit a batch, apply a journal range, read markers or shut down. `units` is JSON text, because cloning
 * objects between threads is slower.
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

/**
 * Markers ordered by id, with the first MARKER_DIGEST_BYTES of each digest. The arrays are empty if no more markers
 * exist.
 */
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
 * Two numbers per write. The first number is the count of rows that the first step changed. The second number is the
 * rowid that this step inserted.
 */
export interface BatchReply {
  results: number[];
  /** Indexes and errors of failed writes. The two numbers for a failed write in `results` are meaningless. */
  failures: Array<[place: number, failure: Failure]>;
}

/** Progress of applying a journal range. After a failure, it is possible that only part of the range was applied. */
export interface ApplyReply {
  applied: number;
  failure?: Failure;
}

export interface Recovered {
  units: number;
  /**
   * Folder to which all journal files were moved if data was missing or unreadable, otherwise undefined. An incomplete
   * last write does not count, because that write was never acknowledged.
   */
  quarantine: string | undefined;
  /** Journal files in which one of the two header copies is damaged. */
  damagedHeaders: string[];
}

/** First message of the thread. Each later message answers one request, in the order of the requests. */
export type Ready = { ready: Recovered } | { failure: Failure };
