import { storeError } from '../../store-error.ts';
import { Batches, type Pending } from './batches.ts';
import { layOut, pack } from './pack.ts';
import type { BatchReply, Unit } from './protocol.ts';
import { type CommitterThread, endedError, errorOf } from './thread.ts';

/** Writes units to the database and acknowledges each after its commit. */
export interface Committer {
  /**
   * Settles once `unit` is on disk; concurrent units share a transaction. Throws STORE_ERROR or the unit's
   * SQLite error.
   */
  write(unit: Unit): Promise<Written>;
  /** Resolves when no writes are queued. Later writes are rejected. */
  close(): Promise<void>;
}

/** Number of rows that a unit's first step changed, and the rowid that it inserted. */
interface Written {
  changes: number;
  rowid: number;
}

const MAX_BATCH = 512;
/**
 * Minimum batch size under load. Sync handlers finish one by one; without gathering, commits of two or three writes
 * were a sixth of a delivery's cost.
 */
const SMALL_BATCH = 8;

export function createCommitter(thread: Pick<CommitterThread, 'commit'>, file: string): Committer {
  const batches = new Batches<Unit, Written>({
    async write(batch) {
      const { units, parts, length } = pack(batch.map(({ item }) => item));
      // One buffer for all parts, transferred instead of cloned. It is not allocated from Node's pool, because a transfer
      // would take the whole pool.
      const bytes = new Uint8Array(length);
      layOut(parts, bytes, 0);
      settle(batch, await thread.commit({ units, bytes: bytes.buffer }), file);
    },
    cut: () => MAX_BATCH,
    small: SMALL_BATCH,
    closedError: () => endedError(file),
  });
  return { write: (unit) => batches.add(unit), close: () => batches.close() };
}

function settle(
  batch: readonly Pending<Unit, Written>[],
  { results, failures }: BatchReply,
  file: string,
): void {
  for (const [place, failure] of failures) batch[place]!.reject(storeError(file, errorOf(failure)));
  // Resolving a rejected promise has no effect.
  for (const [i, { resolve }] of batch.entries())
    resolve({ changes: results[2 * i]!, rowid: results[2 * i + 1]! });
}
