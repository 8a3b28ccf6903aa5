import type { Paging } from '../../ports/telemetry.ts';
import type { PostgresDatabase } from '../database.ts';
import { newestFirst, storedRange, type Window, within } from './days.ts';
import type { Kind } from './schema.ts';

/** Adds a value to a statement and returns its placeholder. */
export type Parameter = (value: unknown) => string;

/** Maximum number of rows that contain the searched words and that are sorted by time. */
const MAX_SORTED = 10_000;

export interface RecordTableOptions<Filter> {
  kind: Kind;
  columns: string;
  /** Column of the record's time. */
  time: string;
  /** Returns the SQL conditions of a filter, without its time range. */
  conditions(filter: Filter, parameter: Parameter): string[];
  /** Returns whether a filter searches for words. */
  searches(filter: Filter): boolean;
}

/**
 * Reads a partitioned table in parts of its time range. Each statement locks all partitions of its range, and the
 * number of locks is limited.
 */
export class RecordTable<Row extends { id?: number }, Filter extends { from?: number; to?: number }> {
  readonly #database: PostgresDatabase;
  readonly #options: RecordTableOptions<Filter>;

  constructor(database: PostgresDatabase, options: RecordTableOptions<Filter>) {
    this.#database = database;
    this.#options = options;
  }

  /** Returns the time range of all stored records, in whole days. */
  stored(): Promise<Window | undefined> {
    return storedRange(this.#database, this.#options.kind);
  }

  /** Returns a page of the matching rows, newest first. */
  async page(filter: Filter, { limit, offset }: Paging): Promise<Row[]> {
    const { columns, time } = this.#options;
    const found: Row[] = [];
    let skipped = 0;
    for (const window of limit === 0 ? [] : await this.#windows(filter)) {
      const skip = offset - skipped;
      const order = (await this.#isRare(filter, window)) ? `${time} + 0` : time;
      const rows = await this.#select<Row>(
        columns,
        (p) => `${this.#where(filter, window, p)}
          order by ${order} desc, id desc limit ${p(limit - found.length)} offset ${p(skip)}`,
      );
      found.push(...rows);
      if (found.length === limit) break;
      if (rows.length > 0) skipped = offset;
      else if (skip > 0) skipped += await this.#countIn(window, filter, skip);
    }
    return found;
  }

  /** Counts the matching rows, but at most `limit`. */
  async count(filter: Filter, limit: number): Promise<number> {
    let count = 0;
    for (const window of await this.#windows(filter)) {
      if (count === limit) break;
      count += await this.#countIn(window, filter, limit - count);
    }
    return count;
  }

  /** Returns the matching rows after an id, in the order of their ids. */
  async after(filter: Filter, id: number, limit: number): Promise<Row[]> {
    const stored = await storedRange(this.#database, this.#options.kind, id);
    const found: Row[] = [];
    for (const window of stored ? newestFirst(stored) : []) {
      const rows = await this.#select<Row>(
        this.#options.columns,
        (p) =>
          `${this.#where(filter, within(window, filter), p)} and id > ${p(id)} order by id limit ${p(limit)}`,
      );
      found.push(...rows);
    }
    return found.sort((a, b) => a.id! - b.id!).slice(0, limit);
  }

  /** Returns the newest matching rows in the order of their ids, and the id after which a stream continues. */
  async latest(filter: Filter, limit: number): Promise<{ rows: Row[]; after: number }> {
    // The id is read first, so that no concurrent record is missed.
    const after = await this.#lastId();
    const rows = await this.page(filter, { limit, offset: 0 });
    return { rows: rows.filter(({ id }) => id! <= after).sort((a, b) => a.id! - b.id!), after };
  }

  async #windows(filter: Filter): Promise<Window[]> {
    const stored = await this.stored();
    return stored ? newestFirst(within(stored, filter)) : [];
  }

  /**
   * Returns whether few rows contain the searched words. PostgreSQL cannot estimate that, and would scan all rows in the
   * order of their times. An expression as order makes it use the index of the words.
   */
  async #isRare(filter: Filter, window: Window): Promise<boolean> {
    return this.#options.searches(filter) && (await this.#countIn(window, filter, MAX_SORTED)) < MAX_SORTED;
  }

  async #countIn(window: Window, filter: Filter, limit: number): Promise<number> {
    const rows = await this.#select<{ count: number }>(
      'count(*) as count',
      (p) =>
        `(select from svc.${this.#options.kind} where ${this.#conditions(filter, window, p)} limit ${p(limit)}) t`,
    );
    return rows[0]!.count;
  }

  /** Returns the id of the latest record. All records with lower ids are visible. */
  async #lastId(): Promise<number> {
    const { rows } = await this.#database.sql<{ id: number }>(
      'select last_id as id from svc.telemetry_position',
    );
    return rows[0]!.id;
  }

  #where(filter: Filter, window: Window, parameter: Parameter): string {
    return `svc.${this.#options.kind} where ${this.#conditions(filter, window, parameter)}`;
  }

  #conditions(filter: Filter, { from, to }: Window, parameter: Parameter): string {
    const { time, conditions } = this.#options;
    const range = [`${time} >= ${parameter(from)}`, `${time} < ${parameter(to)}`];
    return [...range, ...conditions(filter, parameter)].join(' and ');
  }

  #select<Result extends object>(columns: string, from: (parameter: Parameter) => string): Promise<Result[]> {
    return select<Result>(this.#database, (p) => `select ${columns} from ${from(p)}`);
  }
}

/** Runs a statement whose values are added while its text is built. */
export async function select<Row extends object>(
  database: PostgresDatabase,
  statement: (parameter: Parameter) => string,
): Promise<Row[]> {
  const values: unknown[] = [];
  const text = statement((value) => `$${values.push(value)}`);
  return (await database.sql<Row & Record<string, unknown>>(text, values)).rows;
}
