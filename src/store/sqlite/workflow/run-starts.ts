import { DEFINITION_USE_MS, NEW_PROGRESS } from '../../new-run.ts';
import type {
  KeyedRun,
  NewRun,
  RunRecord,
  StartOptions,
  StartResult,
  TenantWorkflow,
} from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { LIVE } from './conditions.ts';
import { RUN_COLUMNS, type RunRow } from './run-rows.ts';
import type { WorkflowTables } from './tables.ts';

/** Starts runs, and finds runs by idempotency key. Methods must run inside `db.write` or `db.read`. */
export class RunStarts {
  readonly #sql: ReturnType<typeof statements>;
  readonly #tables: WorkflowTables;

  constructor(tables: WorkflowTables) {
    this.#tables = tables;
    this.#sql = statements(tables.db);
  }

  keyed(tenantId: string, key: string, now: number): KeyedRun | undefined {
    const entry = this.#sql.findKey.get({ tenantId, key, now });
    const row = entry && this.#sql.find.get({ id: entry.runId });
    return entry && { digest: entry.digest, run: row && this.#tables.rows.recordOf(row) };
  }

  #knownRun(
    { parentId, parentStep, tenantId, createdAt }: NewRun,
    options: StartOptions,
  ): StartResult | undefined {
    if (parentId !== null) {
      const child = this.#sql.child.get({ parentId, parentStep });
      if (child) return { outcome: 'known', run: this.#tables.rows.recordOf(child) };
    }
    if (!options.idempotency) return undefined;
    const { key, digest } = options.idempotency;
    const known = this.keyed(tenantId, key, createdAt);
    if (!known) return undefined;
    if (known.digest !== digest) return { outcome: 'different', ...known };
    return known.run && { outcome: 'known', run: known.run };
  }

  #exceeded({ tenantId }: NewRun, { limits, day }: StartOptions): StartResult | undefined {
    if (!limits) return undefined;
    const { concurrent, perDay, perMonth } = limits;
    if (concurrent !== null && this.#sql.live.get({ tenantId, limit: concurrent })! >= concurrent)
      return { outcome: 'over', limit: 'concurrent' };
    if (perDay !== null && (this.#sql.usage.get({ tenantId, from: day, to: day }) ?? 0) >= perDay)
      return { outcome: 'over', limit: 'perDay' };
    const month = day.slice(0, 7);
    if (
      perMonth !== null &&
      (this.#sql.usage.get({ tenantId, from: month, to: `${month}-99` }) ?? 0) >= perMonth
    )
      return { outcome: 'over', limit: 'perMonth' };
    return undefined;
  }

  /** Checks idempotency, limits and concurrency, then writes the run. Must run inside `db.write`. */
  start(run: NewRun, options: StartOptions): StartResult {
    const early = this.#knownRun(run, options) ?? this.#exceeded(run, options);
    if (early) return early;
    const { concurrencyKey, runAt } = run;
    const scheduled = runAt !== null && runAt > run.createdAt;
    const isPaused = this.#sql.isPaused.get({ tenantId: run.tenantId, workflowId: run.workflowId }) === 1;
    // A run with a later start time acquires its concurrency key only when that time is reached. A run of a paused workflow
    // waits for its key, whatever its strategy.
    const key = scheduled ? null : concurrencyKey;
    const acquisition =
      key !== null && isPaused
        ? { hasRoom: false, rejected: false, supersedes: [] }
        : this.#tables.keys.acquire(key, run.concurrencyLimit ?? 1, options.strategy);
    if (acquisition.rejected) return { outcome: 'over', limit: 'key' };
    const { hasRoom, supersedes } = acquisition;

    const { hash, workflowId, body } = options.definition;
    const usedAt = run.createdAt;
    this.#sql.putDefinition.run({ hash, workflowId, body, usedAt, stale: usedAt - DEFINITION_USE_MS });
    const ready = hasRoom && !scheduled;
    const record = this.#tables.rows.insertRun({
      ...run,
      ...NEW_PROGRESS,
      ...(isPaused ? { pauseScope: 'workflow' } : {}),
      ready,
      reason: scheduled ? 'scheduled' : ready ? 'capacity' : 'concurrency',
      rank: run.priority,
      wakeAt: scheduled ? runAt : null,
    });
    this.#copyParts(record, options);
    this.#tables.rows.addEvents(record.seq, [
      { at: run.createdAt, type: 'run.queued', data: { reason: record.reason } },
    ]);
    this.#sql.countUsage.run({ tenantId: run.tenantId, day: options.day });
    if (options.idempotency) {
      const { key: name, digest, expiresAt } = options.idempotency;
      this.#sql.putKey.run({ tenantId: run.tenantId, key: name, digest, runId: run.id, expiresAt });
    }
    return { outcome: 'started', run: record, supersedes };
  }

  #copyParts({ seq }: RunRecord, { parts }: StartOptions): void {
    for (const job of parts?.jobs ?? []) this.#tables.rows.putJob(seq, job);
    for (const step of parts?.steps ?? []) this.#tables.rows.putStep(seq, step);
    for (const attempt of parts?.attempts ?? []) this.#tables.rows.putAttempt(seq, attempt);
  }
}

function statements(db: Database) {
  return {
    isPaused: db
      .prepare<[TenantWorkflow], 1>(
        'select 1 from paused_workflow where tenant_id = :tenantId and workflow_id = :workflowId',
      )
      .pluck(),
    find: db.prepare<[{ id: string }], RunRow>(`select ${RUN_COLUMNS} from run where id = :id`),
    child: db.prepare<[{ parentId: string; parentStep: string | null }], RunRow>(
      `select ${RUN_COLUMNS} from run where parent_id = :parentId and parent_step = :parentStep`,
    ),
    live: db
      .prepare<[{ tenantId: string; limit: number }], number>(
        `select count(*) from (select 1 from run where tenant_id = :tenantId and ${LIVE} and parent_id is null limit :limit)`,
      )
      .pluck(),
    usage: db
      .prepare<[{ tenantId: string; from: string; to: string }], number | null>(
        'select sum(runs) from usage where tenant_id = :tenantId and day between :from and :to',
      )
      .pluck(),
    countUsage: db.prepare<[{ tenantId: string; day: string }]>(`
      insert into usage (tenant_id, day, runs) values (:tenantId, :day, 1)
      on conflict (tenant_id, day) do update set runs = runs + 1`),
    putDefinition: db.prepare<
      [{ hash: string; workflowId: string; body: string; usedAt: number; stale: number }]
    >(`
      insert into definition (hash, workflow_id, body, used_at) values (:hash, :workflowId, :body, :usedAt)
      on conflict (hash) do update set used_at = excluded.used_at where used_at < :stale`),
    findKey: db.prepare<[{ tenantId: string; key: string; now: number }], { digest: string; runId: string }>(`
      select digest, run_id as runId from idempotency
      where tenant_id = :tenantId and key = :key and expires_at > :now`),
    putKey: db.prepare<
      [{ tenantId: string; key: string; digest: string; runId: string; expiresAt: number }]
    >(`
      insert or replace into idempotency (tenant_id, key, digest, run_id, expires_at)
      values (:tenantId, :key, :digest, :runId, :expiresAt)`),
  };
}
