import type { PostgresDatabase } from './database.ts';

/** SQL condition that is true if commits wait for a standby. */
export const HAS_STANDBY = "current_setting('synchronous_standby_names') <> ''";

/** SQL that makes the commit wait for the standby by writing an empty record to the write-ahead log. */
const EMPTY_COMMIT = `select case when ${HAS_STANDBY} then pg_logical_emit_message(true, 'svc', '') end`;

/**
 * Waits until the rows that were read are on a synchronous standby, if the server has such a standby. Until then, a
 * failover could undo these rows.
 */
export class ReplicationBarrier {
  readonly #database: PostgresDatabase;
  #running: Promise<void> | undefined;
  /** A commit that has not started yet. All callers share this commit. */
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
