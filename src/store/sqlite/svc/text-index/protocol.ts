/** Start parameters of the text index worker. */
export interface TextIndexStart {
  dataDir: string;
  /** Not 0 once the worker shall stop. */
  stop: Int32Array;
}
