import type Sqlite from 'better-sqlite3';
import { retryWhileBusy } from './busy-retry.ts';
import { isBusy } from './store-error.ts';

export interface GroupCommit {
  /**
   * Runs `work` in the next shared transaction. Settles once the transaction is on disk. `work` must be synchronous,
   * must only use the database, and might run twice.
   */
  write<T>(work: () => T): Promise<T>;
  /**
   * Resolves once all earlier commits are on disk. Queries wait for this promise because they might have read unsynced
   * data.
   */
  synced(): Promise<void>;
  idle(): Promise<void>;
}

interface Write extends Work {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

type Outcome = { value: unknown } | { error: unknown };

/** Maximum number of writes per transaction. A full transaction blocks the event loop for about ten milliseconds. */
const MAX_BATCH = 512;

/**
 * Groups writes into transactions, so that several writes need only one fsync. `sync` replaces the sync of SQLite and
 * must not reject.
 */
export function createGroupCommit(
  sqlite: Sqlite.Database,
  busyTimeoutMs: number,
  sync?: () => Promise<void>,
): GroupCommit {
  const { runBatch, runSeparately } = transactions(sqlite);
  let queue: Write[] = [];
  let draining: Promise<void> | undefined;
  let syncing: Promise<void> | undefined;

  /**
   * Starts the sync in the same event-loop turn as the commit. Otherwise, a query could read the batch without waiting
   * for its sync. Queries do not wait for a batch that still waits for the lock.
   */
  function committed(outcomes: Outcome[]): Outcome[] {
    if (sync) syncing = sync();
    return outcomes;
  }

  async function commit(batch: Write[]): Promise<Outcome[]> {
    for (const run of [runBatch, runSeparately]) {
      try {
        return await retryWhileBusy(() => committed(run(batch)), busyTimeoutMs);
      } catch (error) {
        if (isBusy(error) || batch.length === 1) return batch.map(() => ({ error }));
      }
    }
    const outcomes: Outcome[] = [];
    for (const write of batch) outcomes.push(...(await commit([write])));
    return outcomes;
  }

  async function drain(): Promise<void> {
    while (queue.length > 0) {
      await new Promise((turnEnds) => setImmediate(turnEnds));
      const batch = queue.slice(0, MAX_BATCH);
      queue = queue.slice(MAX_BATCH);
      const outcomes = await commit(batch);
      await syncing;
      for (const [index, write] of batch.entries()) settle(write, outcomes[index]!);
    }
    draining = undefined;
  }

  return {
    write<T>(work: () => T): Promise<T> {
      return new Promise<T>((resolve, reject) => {
        queue.push({ work, resolve: resolve as (value: unknown) => void, reject });
        draining ??= drain();
      });
    },
    async synced() {
      await syncing;
    },
    idle: async () => draining,
  };
}

function settle(write: Write, outcome: Outcome): void {
  if ('error' in outcome) write.reject(outcome.error);
  else write.resolve(outcome.value);
}

interface Work {
  work: () => unknown;
}

export function transactions(sqlite: Sqlite.Database) {
  const begin = sqlite.prepare('begin immediate');
  const commit = sqlite.prepare('commit');
  const rollback = sqlite.prepare('rollback');
  const savepoint = sqlite.prepare('savepoint one_write');
  const release = sqlite.prepare('release one_write');
  const undo = sqlite.prepare('rollback to one_write');

  function transaction(run: () => Outcome[]): Outcome[] {
    begin.run();
    try {
      const outcomes = run();
      commit.run();
      return outcomes;
    } catch (error) {
      if (sqlite.inTransaction) rollback.run();
      throw error;
    }
  }

  function guarded({ work }: Work): Outcome {
    savepoint.run();
    try {
      const value = work();
      release.run();
      return { value };
    } catch (error) {
      // After a full disk or an I/O error, SQLite rolls back the whole transaction. All outcomes of this batch are then
      // invalid.
      if (!sqlite.inTransaction) throw error;
      undo.run();
      release.run();
      return { error };
    }
  }

  return {
    /** Commits all writes or none. Throws the error of the first failing write. */
    runBatch: (batch: readonly Work[]) => transaction(() => batch.map(({ work }) => ({ value: work() }))),
    /**
     * Runs each write in its own savepoint, so that a failing write does not affect other writes. Throws only if the
     * whole transaction fails.
     */
    runSeparately: (batch: readonly Work[]) => transaction(() => batch.map(guarded)),
  };
}
