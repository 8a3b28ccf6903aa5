import type Sqlite from 'better-sqlite3';
import { whileBusy } from './patience.ts';
import { isBusy } from './store-error.ts';

export interface GroupCommit {
  /**
   * Runs `work` in the transaction that all writes of this event-loop turn share, and settles once it is on disk.
   * What `work` throws rejects this promise alone and undoes this write alone. `work` is synchronous, touches
   * nothing but the database, and may run twice (see below): only its last run counts.
   */
  write<T>(work: () => T): Promise<T>;
  /** Settles once what is committed by now is on disk too: what a query has seen may be behind by one sync. */
  synced(): Promise<void>;
  /** Settles when nothing is queued. */
  idle(): Promise<void>;
}

interface Write extends Work {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

type Outcome = { value: unknown } | { error: unknown };

/** A longer queue is cut, so that one transaction never stops the event loop for more than some ten milliseconds. */
const LARGEST_BATCH = 512;

/**
 * One fsync for many writers: at `synchronous=FULL` the commit costs a hundred times what a row costs.
 *
 * A batch runs optimistically, without savepoints; only when a write fails is the batch rolled back and run again with
 * a savepoint for each. Measured (500-byte rows, FULL, per write, batches of 64): 5.2 us without savepoints, 6.5 with,
 * 7.9 when a failure makes the batch run twice. Failures are rare and cost half as much again; savepoints would cost
 * a quarter on every write. When the transaction itself is lost (a full disk makes SQLite roll back everything), each
 * write gets a transaction of its own, so that those which still fit, such as deletes, are not refused with the rest.
 *
 * `sync`, where given, brings the log to the disk behind each commit, which then does not wait for it itself. The next
 * batch gathers meanwhile. It must not fail: whoever gives it ends the process instead.
 */
export function createGroupCommit(
  sqlite: Sqlite.Database,
  busyPatienceMs: number,
  sync?: () => Promise<void>,
): GroupCommit {
  const { together, apart } = transactions(sqlite);
  let queue: Write[] = [];
  let draining: Promise<void> | undefined;
  let syncing: Promise<unknown> | undefined;

  async function commit(batch: Write[]): Promise<Outcome[]> {
    for (const run of [together, apart]) {
      try {
        return await whileBusy(() => run(batch), busyPatienceMs);
      } catch (error) {
        if (isBusy(error) || batch.length === 1) return batch.map(() => ({ error }));
      }
    }
    const outcomes: Outcome[] = [];
    for (const write of batch) outcomes.push(...(await commit([write])));
    return outcomes;
  }

  /** A batch counts as not yet on disk from the very turn of its commit: else somebody might see it before the sync began. */
  function commitAndSync(batch: Write[]): Promise<Outcome[]> {
    if (!sync) return commit(batch);
    const done = commit(batch).then(async (outcomes) => {
      await sync();
      return outcomes;
    });
    syncing = done;
    return done;
  }

  async function drain(): Promise<void> {
    while (queue.length > 0) {
      await new Promise((turnEnds) => setImmediate(turnEnds));
      const batch = queue.slice(0, LARGEST_BATCH);
      queue = queue.slice(LARGEST_BATCH);
      const outcomes = await commitAndSync(batch);
      batch.forEach((write, index) => {
        settle(write, outcomes[index]!);
      });
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

/** What a transaction runs; see GroupCommit for what it may do. */
interface Work {
  work: () => unknown;
}

/** Runs many writes in one transaction of `sqlite`: optimistically, or each behind a savepoint of its own. */
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
      // Some failures (no room, I/O) end the transaction itself: then no outcome of this batch stands.
      if (!sqlite.inTransaction) throw error;
      undo.run();
      release.run();
      return { error };
    }
  }

  return {
    /** All or nothing: throws what the first failing write threw. */
    together: (batch: readonly Work[]) => transaction(() => batch.map(({ work }) => ({ value: work() }))),
    /** Each for itself; throws only when the whole transaction is lost. */
    apart: (batch: readonly Work[]) => transaction(() => batch.map(guarded)),
  };
}
