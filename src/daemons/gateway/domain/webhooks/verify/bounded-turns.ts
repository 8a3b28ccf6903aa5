interface Waiting {
  begin(): void;
  refuse(error: Error): void;
}

/** Waiting calls of one key, by lane in round-robin order. */
interface Turns {
  running: number;
  waiting: number;
  lanes: Map<string, Waiting[]>;
}

export interface BoundedTurnsOptions {
  /** Concurrent calls per key. */
  concurrency: number;
  /** Waiting calls per key. */
  maxWaiting: number;
}

/**
 * Limits concurrent calls per key; waiting calls are queued in lanes, served round robin. A full queue drops
 * the last call of its longest lane, so that one lane cannot lock out others.
 */
export class BoundedTurns {
  readonly #keys = new Map<string, Turns>();
  readonly #options: BoundedTurnsOptions;

  constructor(options: BoundedTurnsOptions) {
    this.#options = options;
  }

  /** Rejects with the error of `full` when the key's queue has no room for the lane. */
  async run<T>(
    { key, lane }: { key: string; lane: string },
    call: () => Promise<T>,
    full: () => Error,
  ): Promise<T> {
    const turns = this.#keys.get(key) ?? { running: 0, waiting: 0, lanes: new Map() };
    this.#keys.set(key, turns);
    if (turns.running < this.#options.concurrency) turns.running++;
    else await this.#wait(turns, lane, full);
    try {
      return await call();
    } finally {
      const next = takeNext(turns);
      if (next) next.begin();
      else if (--turns.running === 0) this.#keys.delete(key);
    }
  }

  #wait(turns: Turns, lane: string, full: () => Error): Promise<void> {
    if (turns.waiting >= this.#options.maxWaiting && !makeRoom(turns, lane, full)) throw full();
    return new Promise((resolve, reject) => {
      const own = turns.lanes.get(lane) ?? [];
      own.push({ begin: resolve, refuse: reject });
      turns.lanes.set(lane, own);
      turns.waiting++;
    });
  }
}

/** A served lane moves to the end. */
function takeNext(turns: Turns): Waiting | undefined {
  const [first] = turns.lanes;
  if (!first) return undefined;
  const [lane, waiting] = first;
  const next = waiting.shift();
  turns.lanes.delete(lane);
  if (waiting.length > 0) turns.lanes.set(lane, waiting);
  turns.waiting--;
  return next;
}

/** Returns false if the lane is the longest one itself. */
function makeRoom(turns: Turns, lane: string, full: () => Error): boolean {
  let longest: Waiting[] = [];
  for (const waiting of turns.lanes.values()) if (waiting.length > longest.length) longest = waiting;
  if ((turns.lanes.get(lane)?.length ?? 0) + 1 >= longest.length) return false;
  longest.pop()!.refuse(full());
  turns.waiting--;
  return true;
}
