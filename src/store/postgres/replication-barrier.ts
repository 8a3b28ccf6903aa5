import type { PostgresDatabase } from './database.ts';

/** SQL that tells whether commits wait for a standby. */
export const HAS_STANDBY = "current_setting('synchronous_standby_names') <> ''";

/** Writes an empty record to the write-ahead log, whose commit waits for the standby. Without a standby, writes nothing. */
const EMPTY_COMMIT = `select case when ${HAS_STANDBY} then pg_logical_emit_message(true, 'svc', '') end`;

/**
 * Waits until the rows that were read are on a synchronous standby. When a primary restarts after a crash, it shows
 * transactions that no standby has and no client was told of, and a failover would undo them.
 */
export class ReplicationBarrier {
  readonly #database: PostgresDatabase;
  #running: Promise<void> | undefined;
  /** A commit that has not started yet. All callers share it. */
  #next: Promise<void> | undefined;

  constructor(database: PostgresDatabase) {
    this.#database = database;
  }

  /** Resolves when all rows that were visible before the call are on the standby. */
  pass(): Promise<void> {
    if (!this.#running) return this.#commit();
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.#commit();
      });
    return this.#next;
  }

  #commit(): Promise<void> {
    const committing = this.#database
      .sql(EMPTY_COMMIT)
      .then(() => {})
      .finally(() => {
        this.#running = undefined;
      });
    this.#running = committing;
    return committing;
  }
}
