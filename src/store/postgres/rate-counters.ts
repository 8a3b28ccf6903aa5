import type { Clock } from '../../kit/time/clock.ts';
import { every } from '../../kit/time/clock.ts';
import { minutes } from '../../kit/time/duration.ts';
import {
  type PermitGrant,
  type PermitRequest,
  RATE_SLICES,
  type RateCounters,
  sliceMsOf,
} from '../ports/index.ts';
import type { PostgresDatabase } from './database.ts';

const SWEEP_EVERY_MS = minutes(1);
/** Maximum number of rows that one statement deletes. */
const MAX_SWEPT = 1000;

/**
 * Table and function of the rate counters. Time slices follow the clock of the server. A crash of the server empties
 * the table, because the table has no write-ahead log.
 */
export const RATE_COUNTS = `
  create unlogged table svc.rate_count (
    key text collate "C" primary key,
    slices bigint[] not null,
    calls bigint[] not null,
    ends_at bigint not null
  );
  create index rate_count_end on svc.rate_count (ends_at);
  create function svc.take_permits(
    counter text, max_calls bigint, slice_ms bigint, want bigint,
    out granted bigint, out permits_left bigint, out frees_in_ms bigint
  ) language plpgsql as $$
  declare
    now_ms bigint;
    slice bigint;
    ats bigint[];
    counts bigint[];
    newest integer;
    total bigint;
  begin
    loop
      insert into svc.rate_count (key, slices, calls, ends_at) values (counter, '{}', '{}', 0) on conflict do nothing;
      select row.slices, row.calls into ats, counts from svc.rate_count as row where row.key = counter for update;
      exit when found;
    end loop;
    now_ms := floor(extract(epoch from clock_timestamp()) * 1000);
    slice := now_ms / slice_ms;
    select coalesce(array_agg(live.at order by live.at), '{}'), coalesce(array_agg(live.n order by live.at), '{}'),
        coalesce(sum(live.n), 0)
      into ats, counts, total
      from unnest(ats, counts) as live (at, n)
      where live.at between slice - ${RATE_SLICES} and slice + 1 and live.n > 0;
    newest := cardinality(ats);
    granted := greatest(least(want, max_calls - total), 0);
    if granted > 0 then
      if newest > 0 and ats[newest] >= slice then
        counts[newest] := counts[newest] + granted;
      else
        ats := ats || slice;
        counts := counts || granted;
      end if;
    elsif want < 0 and newest > 0 then
      counts[newest] := counts[newest] - 1;
    end if;
    update svc.rate_count as row
      set slices = ats, calls = counts, ends_at = now_ms + slice_ms * ${RATE_SLICES + 2} where row.key = counter;
    permits_left := greatest(max_calls - total - granted, 0);
    frees_in_ms := (coalesce(ats[1], slice) + ${RATE_SLICES + 1}) * slice_ms - now_ms;
  end $$;`;

interface Row {
  granted: number;
  permits_left: number;
  frees_in_ms: number;
}

/** Rate counters in PostgreSQL. Closing the counters also closes the database. */
export class PostgresRateCounters implements RateCounters {
  readonly #database: PostgresDatabase;
  readonly #stop: () => void;

  constructor(database: PostgresDatabase, clock: Clock) {
    this.#database = database;
    this.#stop = every(clock, SWEEP_EVERY_MS, () => {
      // A failed sweep needs no handling, because the next sweep deletes the same rows.
      void this.#sweep().catch(() => {});
    });
  }

  async take(key: string, { limit, windowMs, calls }: PermitRequest): Promise<PermitGrant> {
    const row = await this.#take(key, limit, windowMs, calls);
    return { granted: row.granted, left: row.permits_left, freesInMs: row.frees_in_ms };
  }

  async giveBack(key: string, windowMs: number): Promise<void> {
    await this.#take(key, 0, windowMs, -1);
  }

  async close(): Promise<void> {
    this.#stop();
    await this.#database.close();
  }

  async #take(key: string, limit: number, windowMs: number, calls: number): Promise<Row> {
    const { rows } = await this.#database.sql<Row & Record<string, unknown>>(
      'select * from svc.take_permits($1, $2, $3, $4)',
      [key, limit, sliceMsOf(windowMs), calls],
    );
    return rows[0]!;
  }

  async #sweep(): Promise<void> {
    // Callers that are never seen again have counters too, so one batch per minute could be too few.
    while ((await this.#sweepBatch()) === MAX_SWEPT);
  }

  async #sweepBatch(): Promise<number> {
    const { rowCount } = await this.#database.sql(
      `delete from svc.rate_count where key in (
        select key from svc.rate_count where ends_at <= extract(epoch from clock_timestamp()) * 1000
        order by ends_at limit $1 for update skip locked)`,
      [MAX_SWEPT],
    );
    return rowCount ?? 0;
  }
}
