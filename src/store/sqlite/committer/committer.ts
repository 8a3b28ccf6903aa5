import { storeError } from '../store-error.ts';
import { createBatches, type Pending } from './batches.ts';
import { layOut, pack } from './pack.ts';
import type { BatchReply, Unit } from './protocol.ts';
import { type CommitterThread, endedError, errorOf } from './thread.ts';

/** Writes that are committed before they are acknowledged. */
export interface Committer {
  /** Settles once `unit` is on disk; units of one moment share a transaction. Throws STORE_ERROR, and what SQLite says of the unit. */
  write(unit: Unit): Promise<Written>;
  /** Settles when nothing is queued; later writes are refused. */
  close(): Promise<void>;
}

/** What a unit's first step changed, and the rowid that it made. */
interface Written {
  changes: number;
  rowid: number;
}

const LARGEST_BATCH = 512;
/** Handlers that senders wait for end one by one, and commits of two or three writes each were a sixth of what such a delivery cost. */
const SMALL_BATCH = 8;

export function createCommitter(thread: Pick<CommitterThread, 'commit'>, file: string): Committer {
  const batches = createBatches<Unit, Written>({
    async write(batch) {
      const { units, parts, length } = pack(batch.map(({ item }) => item));
      // Handed over: a buffer for each would cost more than its copy, and a slice of node's pool would take the whole pool along.
      const bytes = new Uint8Array(length);
      layOut(parts, bytes, 0);
      settle(batch, await thread.commit({ units, bytes: bytes.buffer }), file);
    },
    cut: () => LARGEST_BATCH,
    small: SMALL_BATCH,
    closedError: () => endedError(file),
  });
  return { write: batches.add, close: batches.close };
}

function settle(
  batch: readonly Pending<Unit, Written>[],
  { results, failures }: BatchReply,
  file: string,
): void {
  for (const [place, failure] of failures) batch[place]!.reject(storeError(file, errorOf(failure)));
  // Settling what was rejected changes nothing.
  for (const [i, { resolve }] of batch.entries())
    resolve({ changes: results[2 * i]!, rowid: results[2 * i + 1]! });
}
