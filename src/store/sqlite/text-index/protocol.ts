/** What the thread that indexes texts is started with. */
export interface TextIndexStart {
  dataDir: string;
  /** Not 0 once it is to end. */
  stop: Int32Array;
}
