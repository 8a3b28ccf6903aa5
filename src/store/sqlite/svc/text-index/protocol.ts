export interface TextIndexStart {
  dataDir: string;
  /** A value other than 0 stops the worker. */
  stop: Int32Array;
}
