/** Start parameters of the text index worker. */
export interface TextIndexStart {
  dataDir: string;
  /** Set to another value than 0 to stop the worker. */
  stop: Int32Array;
}
