import { storeError } from '../../store-error.ts';
import { Batches, type Pending } from './batches.ts';
import { cutUnits } from './cut-units.ts';
import { layOut, pack } from './pack.ts';
import type { BatchReply, Unit } from './protocol.ts';
import { type CommitterThread, endedError, errorOf } from './thread.ts';

export interface Committer {
  /**
   * Commits a write and settles once the write is on disk. Concurrent writes share a transaction. Throws STORE_ERROR or
   * an SQLite error.
   */
  write(unit: Unit): Promise<Written>;
  close(): Promise<void>;
}

/** Number of rows that the first step of a write changed, and the rowid that this step inserted. */
interface Written {
  changes: number;
  rowid: number;
}

/**
 * Size below which a batch waits for more writes under load. Without this wait, small commits accounted for a sixth of
 * the processing time of a delivery.
 */
const SMALL_BATCH = 8;

export function createCommitter(thread: Pick<CommitterThread, 'commit'>, file: string): Committer {
  const batches = new Batches<Unit, Written>({
    async write(batch) {
      const { units, parts, length } = pack(batch.map(({ item }) => item));
      // A transfer detaches the whole underlying memory. The buffer must therefore not come from Node's buffer pool.
      const bytes = new Uint8Array(length);
      layOut(parts, bytes, 0);
      settle(batch, await thread.commit({ units, bytes: bytes.buffer }), file);
    },
    cut: cutUnits,
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
  // The promises of failed writes are already rejected, so calling `resolve` for these writes has no effect.
  for (const [i, { resolve }] of batch.entries())
    resolve({ changes: results[2 * i]!, rowid: results[2 * i + 1]! });
}
