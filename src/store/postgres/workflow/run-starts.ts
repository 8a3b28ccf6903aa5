import type { KeyedRun, NewRun, RunRecord, StartOptions, StartResult } from '../../ports/index.ts';
import { BatchWriter } from '../batch-writer.ts';
import type { PostgresDatabase } from '../database.ts';
import { lockName } from '../named-lock.ts';
import type { Sql } from '../named-sql.ts';
import { acquireKey, type KeyAcquisition, lockKey } from './concurrency-keys.ts';
import { putParts } from './part-rows.ts';
import { isWorkflowPaused } from './pauses.ts';
import { bytesOf, insertRuns, isScheduled, type RunInsert } from './run-inserts.ts';
import { SELECT_RUN } from './run-rows.ts';
import { LIVE } from './schema.ts';

const MAX_ITEMS = 64;
const MAX_BYTES = 4 * 1024 * 1024;
/** All starts of a tenant update the same row of `run_usage`, so further connections would wait for each other. */
const MAX_RUNNING = 1;

/** Returns the run that was started with the given idempotency key, if the key has not expired. */
export async function findKeyed(
  sql: Sql,
  tenantId: string,
  key: string,
  now: number,
): Promise<KeyedRun | undefined> {
  const [entry] = await sql<{ digest: string; runId: string }>(
    `select digest, run_id as "runId" from svc.idempotency_key
     where tenant_id = :tenantId and key = :key and expires_at > :now`,
    { tenantId, key, now },
  );
  if (!entry) return undefined;
  const [run] = await sql<RunRecord>(`${SELECT_RUN} where id = :runId`, entry);
  return { digest: entry.digest, run };
}

/** Starts runs. Runs without conditions share transactions, and each other run has its own. */
export class RunStarts {
  readonly #database: PostgresDatabase;
  readonly #plain: BatchWriter<RunInsert, RunRecord>;

  constructor(database: PostgresDatabase) {
    this.#database = database;
    this.#plain = new BatchWriter({
      write: (batch) => database.write((sql) => insertRuns(sql, batch)),
      sizeOf: bytesOf,
      ...{ maxRunning: MAX_RUNNING, maxItems: MAX_ITEMS, maxBytes: MAX_BYTES },
    });
  }

  async start(run: NewRun, options: StartOptions): Promise<StartResult> {
    if (hasConditions(run, options)) return this.#database.transact((sql) => startRun(sql, run, options));
    const record = await this.#plain.add({ run, options, hasRoom: true });
    return { outcome: 'started', run: record, supersedes: [] };
  }
}

/** Returns whether the start of a run depends on other rows of the store. */
function hasConditions({ parentId, concurrencyKey }: NewRun, options: StartOptions): boolean {
  const { idempotency, parts } = options;
  return Boolean(parentId ?? concurrencyKey ?? idempotency ?? parts) || isLimited(options);
}

function isLimited({ limits }: StartOptions): boolean {
  return limits !== undefined && Object.values(limits).some((limit) => limit !== null);
}

/**
 * Checks limits, idempotency and concurrency, and writes the rows of a new run. Must be called inside a transaction.
 */
async function startRun(sql: Sql, run: NewRun, options: StartOptions): Promise<StartResult> {
  await lockStart(sql, run, options);
  const early = (await knownRun(sql, run, options)) ?? (await exceeded(sql, run, options));
  if (early) return early;
  const { hasRoom, rejected, supersedes, isPaused } = await acquireAtStart(sql, run, options);
  if (rejected) return { outcome: 'over', limit: 'key' };
  const [record] = await insertRuns(sql, [{ run, options, hasRoom, isPaused }]);
  if (options.parts) await putParts(sql, record!.seq, { ...options.parts, events: [], logs: [] });
  return { outcome: 'started', run: record!, supersedes };
}

/**
 * A run with a later start time acquires its concurrency key only when that time is reached. A run of a paused workflow
 * waits for its key, whatever its strategy.
 */
async function acquireAtStart(
  sql: Sql,
  run: NewRun,
  { strategy }: StartOptions,
): Promise<KeyAcquisition & Pick<RunInsert, 'isPaused'>> {
  const key = isScheduled(run) ? null : run.concurrencyKey;
  if (key === null) return { hasRoom: true, rejected: false, supersedes: [] };
  const isPaused = await isWorkflowPaused(sql, run);
  if (isPaused) return { hasRoom: false, rejected: false, supersedes: [], isPaused };
  return { ...(await acquireKey(sql, key, run.concurrencyLimit ?? 1, strategy)), isPaused };
}

/**
 * Serializes starts that check and change the same rows. All starts take these locks in the same order to avoid
 * deadlocks.
 */
async function lockStart(sql: Sql, run: NewRun, options: StartOptions): Promise<void> {
  const { idempotency } = options;
  if (idempotency) await lockName(sql, `idempotency ${run.tenantId} ${idempotency.key}`);
  if (run.parentId !== null) await lockName(sql, `child ${run.parentId} ${run.parentStep}`);
  if (isLimited(options)) await lockName(sql, `tenant ${run.tenantId}`);
  await lockKey(sql, run.concurrencyKey);
}

async function knownRun(
  sql: Sql,
  { parentId, parentStep, tenantId, createdAt }: NewRun,
  { idempotency }: StartOptions,
): Promise<StartResult | undefined> {
  if (parentId !== null) {
    const [child] = await sql<RunRecord>(
      `${SELECT_RUN} where parent_id = :parentId and parent_step = :parentStep`,
      { parentId, parentStep },
    );
    if (child) return { outcome: 'known', run: child };
  }
  const known = idempotency && (await findKeyed(sql, tenantId, idempotency.key, createdAt));
  if (!known) return undefined;
  if (known.digest !== idempotency.digest) return { outcome: 'different', ...known };
  return known.run && { outcome: 'known', run: known.run };
}

async function exceeded(
  sql: Sql,
  { tenantId }: NewRun,
  { limits, day }: StartOptions,
): Promise<StartResult | undefined> {
  if (!limits) return undefined;
  const { concurrent, perDay, perMonth } = limits;
  if (concurrent !== null && (await liveRuns(sql, tenantId, concurrent)) >= concurrent)
    return { outcome: 'over', limit: 'concurrent' };
  if (perDay !== null && (await startedRuns(sql, tenantId, day, day)) >= perDay)
    return { outcome: 'over', limit: 'perDay' };
  const month = day.slice(0, 7);
  if (perMonth !== null && (await startedRuns(sql, tenantId, month, `${month}-99`)) >= perMonth)
    return { outcome: 'over', limit: 'perMonth' };
  return undefined;
}

/** Counts the unfinished runs of the tenant, except child runs. Stops counting at `limit`. */
async function liveRuns(sql: Sql, tenantId: string, limit: number): Promise<number> {
  const [row] = await sql<{ runs: number }>(
    `select count(*) as runs from (
       select from svc.run where tenant_id = :tenantId and ${LIVE} and parent_id is null limit :limit) as live`,
    { tenantId, limit },
  );
  return row!.runs;
}

async function startedRuns(sql: Sql, tenantId: string, from: string, to: string): Promise<number> {
  const [row] = await sql<{ runs: number }>(
    `select coalesce(sum(runs), 0) as runs from svc.run_usage
     where tenant_id = :tenantId and day between :from and :to`,
    { tenantId, from, to },
  );
  return row!.runs;
}
