import type { KeyedRun, NewRun, RunRecord, StartOptions, StartResult } from '../../ports/index.ts';
import { lockName } from '../named-lock.ts';
import type { Sql } from '../named-sql.ts';
import { acquireKey, lockKey } from './concurrency-keys.ts';
import { addEvents } from './history-rows.ts';
import { putAttempt, putJob, putStep } from './job-and-step-rows.ts';
import { insertRun, SELECT_RUN } from './run-rows.ts';
import { LIVE } from './schema.ts';

/**
 * Minimum time between two updates of a definition's `used_at`. An update at each start would double the number of
 * writes.
 */
const DEFINITION_USE_MS = 3600_000;

/** Initial column values of a run that has not started. */
const NEW_PROGRESS = {
  status: 'queued',
  fence: null,
  resumeCount: 0,
  crashes: 0,
  kills: 0,
  inFlight: false,
  ending: null,
  endingAt: null,
  endingHeldAt: null,
  output: null,
  error: null,
  startedAt: null,
  finishedAt: null,
} as const;

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

/**
 * Checks limits, idempotency and concurrency, and writes the rows of a new run. Must be called inside a transaction.
 */
export async function startRun(sql: Sql, run: NewRun, options: StartOptions): Promise<StartResult> {
  await lockStart(sql, run, options);
  const early = (await knownRun(sql, run, options)) ?? (await exceeded(sql, run, options));
  if (early) return early;
  const isScheduled = run.runAt !== null && run.runAt > run.createdAt;
  // A run with a later start time acquires its concurrency key only when that time is reached.
  const key = isScheduled ? null : run.concurrencyKey;
  const { hasRoom, rejected, supersedes } = await acquireKey(
    sql,
    key,
    run.concurrencyLimit ?? 1,
    options.strategy,
  );
  if (rejected) return { outcome: 'over', limit: 'key' };
  await putDefinition(sql, run, options);
  const ready = hasRoom && !isScheduled;
  const record = await insertRun(sql, {
    ...run,
    ...NEW_PROGRESS,
    ready,
    reason: isScheduled ? 'scheduled' : ready ? 'capacity' : 'concurrency',
    rank: run.priority,
    wakeAt: isScheduled ? run.runAt : null,
  });
  await copyParts(sql, record, options);
  await addEvents(sql, record.seq, [
    { at: run.createdAt, type: 'run.queued', data: { reason: record.reason } },
  ]);
  await countStart(sql, run, options);
  return { outcome: 'started', run: record, supersedes };
}

/**
 * Serializes starts that check and change the same rows. All starts take these locks in the same order to avoid
 * deadlocks.
 */
async function lockStart(sql: Sql, run: NewRun, { idempotency, limits }: StartOptions): Promise<void> {
  if (idempotency) await lockName(sql, `idempotency ${run.tenantId} ${idempotency.key}`);
  if (run.parentId !== null) await lockName(sql, `child ${run.parentId} ${run.parentStep}`);
  const hasLimit = limits && Object.values(limits).some((limit) => limit !== null);
  if (hasLimit) await lockName(sql, `tenant ${run.tenantId}`);
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

async function putDefinition(sql: Sql, { createdAt }: NewRun, { definition }: StartOptions): Promise<void> {
  await sql(
    `insert into svc.definition (hash, workflow_id, body, used_at) values (:hash, :workflowId, :body, :usedAt)
     on conflict (hash) do update set used_at = excluded.used_at where svc.definition.used_at < :stale`,
    { ...definition, usedAt: createdAt, stale: createdAt - DEFINITION_USE_MS },
  );
}

async function copyParts(sql: Sql, { seq }: RunRecord, { parts }: StartOptions): Promise<void> {
  for (const job of parts?.jobs ?? []) await putJob(sql, seq, job);
  for (const step of parts?.steps ?? []) await putStep(sql, seq, step);
  for (const attempt of parts?.attempts ?? []) await putAttempt(sql, seq, attempt);
}

async function countStart(
  sql: Sql,
  { tenantId, id }: NewRun,
  { day, idempotency }: StartOptions,
): Promise<void> {
  if (idempotency)
    await sql(
      `insert into svc.idempotency_key (tenant_id, key, digest, run_id, expires_at)
       values (:tenantId, :key, :digest, :runId, :expiresAt)
       on conflict (tenant_id, key) do update set digest = excluded.digest, run_id = excluded.run_id,
         expires_at = excluded.expires_at`,
      { ...idempotency, tenantId, runId: id },
    );
  // This statement locks a row for which other starts of the tenant wait. The statement runs last, so that the wait is
  // short.
  await sql(
    `insert into svc.run_usage (tenant_id, day, runs) values (:tenantId, :day, 1)
     on conflict (tenant_id, day) do update set runs = svc.run_usage.runs + 1`,
    { tenantId, day },
  );
}
