/** A queue that programs lease from. Each call takes at most `max` items. */
export interface LeasedQueue {
  name: string;
  fill(count: number): Promise<void>;
  /** Leases items and acknowledges them. Returns their number. */
  handle(max: number, program: number): Promise<number>;
  close(): Promise<void>;
}
