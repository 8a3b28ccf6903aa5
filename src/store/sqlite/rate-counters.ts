import { join } from 'node:path';
import type { Logger } from '../../kit/telemetry/logger.ts';
import { type Clock, every } from '../../kit/time/clock.ts';
import { minutes } from '../../kit/time/duration.ts';
import {
  type PermitGrant,
  type PermitRequest,
  RATE_SLICES,
  type RateCounters,
  sliceMsOf,
} from '../ports/index.ts';
import { type Database, openDatabase } from './database.ts';

/** File of the rate counters. Not part of a backup, because the first process of a service empties it at its start. */
const LIMITS_FILE = 'limits.db';
const SWEEP_EVERY_MS = minutes(1);
/** Maximum number of rows that one statement deletes. */
const MAX_SWEPT = 1000;

const MIGRATIONS = [
  `create table rate_count (
     key text primary key,
     slices text not null,
     ends_at integer not null
   ) strict, without rowid;
   create index rate_count_end on rate_count (ends_at);`,
];

export interface SqliteRateCountersOptions {
  dataDir: string;
  /** Whether no other process uses the counters yet, so that counts of an earlier start are deleted. */
  isFirst: boolean;
  clock: Clock;
  logger: Logger;
}

/** Calls per time slice, oldest first. */
type Slices = Array<[slice: number, calls: number]>;

/** Rate counters that the processes of one machine share. */
export class SqliteRateCounters implements RateCounters {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #sql: ReturnType<typeof statements>;
  readonly #stopSweeps: () => void;

  private constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
    this.#sql = statements(db);
    this.#stopSweeps = every(clock, SWEEP_EVERY_MS, () => {
      // A failed sweep needs no handling, because the next sweep deletes the same rows.
      void this.#sweep().catch(() => {});
    });
  }

  static async open({
    dataDir,
    isFirst,
    clock,
    logger,
  }: SqliteRateCountersOptions): Promise<SqliteRateCounters> {
    const file = join(dataDir, LIMITS_FILE);
    const db = await openDatabase({ file, migrations: MIGRATIONS, logger, losable: true });
    const counters = new SqliteRateCounters(db, clock);
    // Times are on the monotonic clock, which starts again with the machine.
    if (isFirst) await db.write(() => counters.#sql.clear.run());
    return counters;
  }

  take(key: string, { limit, windowMs, calls }: PermitRequest): Promise<PermitGrant> {
    const sliceMs = sliceMsOf(windowMs);
    return this.#db.write(() => {
      const now = this.#clock.monotonic();
      const slices = this.#live(key, now, sliceMs);
      const total = slices.reduce((sum, [, count]) => sum + count, 0);
      const granted = Math.max(0, Math.min(calls, limit - total));
      if (granted > 0) add(slices, Math.floor(now / sliceMs), granted);
      this.#store(key, slices, now, sliceMs);
      const oldest = slices[0]?.[0] ?? Math.floor(now / sliceMs);
      const freesInMs = (oldest + RATE_SLICES + 1) * sliceMs - now;
      return { granted, left: Math.max(0, limit - total - granted), freesInMs };
    });
  }

  async giveBack(key: string, windowMs: number): Promise<void> {
    const sliceMs = sliceMsOf(windowMs);
    await this.#db.write(() => {
      const now = this.#clock.monotonic();
      const slices = this.#live(key, now, sliceMs);
      const latest = slices.at(-1);
      if (!latest) return;
      latest[1]--;
      this.#store(key, slices, now, sliceMs);
    });
  }

  async close(): Promise<void> {
    this.#stopSweeps();
    await this.#db.close();
  }

  #live(key: string, now: number, sliceMs: number): Slices {
    const row = this.#sql.get.get({ key });
    if (row === undefined) return [];
    const oldest = Math.floor(now / sliceMs) - RATE_SLICES;
    return (JSON.parse(row) as Slices).filter(([slice, calls]) => slice >= oldest && calls > 0);
  }

  #store(key: string, slices: Slices, now: number, sliceMs: number): void {
    const endsAt = now + sliceMs * (RATE_SLICES + 2);
    this.#sql.set.run({ key, slices: JSON.stringify(slices), endsAt });
  }

  async #sweep(): Promise<void> {
    await this.#db.write(() => this.#sql.sweep.run({ now: this.#clock.monotonic(), limit: MAX_SWEPT }));
  }
}

function add(slices: Slices, slice: number, calls: number): void {
  const latest = slices.at(-1);
  if (latest && latest[0] >= slice) latest[1] += calls;
  else slices.push([slice, calls]);
}

function statements(db: Database) {
  return {
    get: db.prepare<[{ key: string }], string>('select slices from rate_count where key = :key').pluck(),
    set: db.prepare<[{ key: string; slices: string; endsAt: number }]>(`
      insert into rate_count (key, slices, ends_at) values (:key, :slices, :endsAt)
      on conflict (key) do update set slices = excluded.slices, ends_at = excluded.ends_at`),
    clear: db.prepare('delete from rate_count'),
    sweep: db.prepare<[{ now: number; limit: number }]>(`
      delete from rate_count where key in (
        select key from rate_count where ends_at <= :now order by ends_at limit :limit)`),
  };
}
