export interface TextIndexStart {
  dataDir: string;
  /** Shared flag. A value other than 0 stops the worker. */
  stop: Int32Array;
}
