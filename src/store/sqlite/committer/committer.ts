import { storeError } from '../store-error.ts';
import { layOut, pack } from './pack.ts';
import type { BatchReply, Unit } from './protocol.ts';
import { type CommitterThread, endedError, errorOf } from './thread.ts';

/** Writes that are committed before they are acknowledged. */
export interface Committer {
  /** Settles once `unit` is on disk; units of one moment share a transaction. Throws STORE_ERROR, and what SQLite says of the unit. */
  write(unit: Unit): Promise<{ changes: number; rowid: number }>;
  /** Settles when nothing is queued; later writes are refused. */
  close(): Promise<void>;
}

interface Queued {
  unit: Unit;
  resolve(result: { changes: number; rowid: number }): void;
  reject(error: unknown): void;
}

/** A longer queue is cut, so that the first of it need not wait for the last. */
const LARGEST_BATCH = 512;
/**
 * A batch of fewer waits a millisecond for more where there is company: handlers that senders wait for end one by one,
 * and commits of two or three writes each were a sixth of what such a delivery cost.
 */
const SMALL_BATCH = 8;
const GATHER_MS = 1;
/** Company: so many writes in the last batch and the one that gathers. */
const COMPANY = 4;

/** While one batch is being written the next gathers, so batches grow with the load by themselves. */
export function createCommitter(thread: Pick<CommitterThread, 'commit'>, file: string): Committer {
  let queue: Queued[] = [];
  let underWay = false;
  let closed = false;
  let whenIdle: Array<() => void> = [];
  let gathering: NodeJS.Timeout | undefined;

  function next(): void {
    clearTimeout(gathering);
    gathering = undefined;
    if (underWay) return;
    if (queue.length === 0) {
      for (const tell of whenIdle) tell();
      whenIdle = [];
      return;
    }
    const batch = queue.slice(0, LARGEST_BATCH);
    queue = queue.slice(LARGEST_BATCH);
    underWay = true;
    void commit(batch);
  }

  async function commit(batch: Queued[]): Promise<void> {
    try {
      const { units, parts, length } = pack(batch.map(({ unit }) => unit));
      // Handed over: a buffer for each would cost more than its copy, and a slice of node's pool would take the whole pool along.
      const bytes = new Uint8Array(length);
      layOut(parts, bytes, 0);
      settle(batch, await thread.commit({ units, bytes: bytes.buffer }));
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    underWay = false;
    const isWorthwhile =
      queue.length > 0 && queue.length < SMALL_BATCH && batch.length + queue.length >= COMPANY;
    if (isWorthwhile) gathering = setTimeout(next, GATHER_MS);
    else next();
  }

  function settle(batch: Queued[], { results, failures }: BatchReply): void {
    for (const [place, failure] of failures) batch[place]!.reject(storeError(file, errorOf(failure)));
    // Settling what was rejected changes nothing.
    for (let i = 0; i < batch.length; i++)
      batch[i]!.resolve({ changes: results[2 * i]!, rowid: results[2 * i + 1]! });
  }

  return {
    write: (unit) =>
      new Promise((resolve, reject) => {
        if (closed) {
          reject(endedError(file));
          return;
        }
        queue.push({ unit, resolve, reject });
        // The rest of this turn's writes come along.
        if (!underWay && queue.length === (gathering ? SMALL_BATCH : 1)) setImmediate(next);
      }),
    async close() {
      closed = true;
      if (underWay || queue.length > 0) await new Promise<void>((resolve) => whenIdle.push(resolve));
    },
  };
}
