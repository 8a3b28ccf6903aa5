import { isSignal } from '../../inbox-kind.ts';
import type { RunRecord, RunStore, RunWrite, WriteResult } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { PARKED } from './conditions.ts';
import type { WorkflowTables } from './tables.ts';

const FINAL = new Set(['succeeded', 'failed', 'timed_out', 'cancelled']);

/** Changes runs that have started. Methods must run inside `db.write`. */
export class RunWrites {
  readonly #sql: ReturnType<typeof statements>;
  readonly #tables: WorkflowTables;

  constructor(tables: WorkflowTables) {
    this.#tables = tables;
    this.#sql = statements(tables.db);
  }

  write({ seq, expect, run, at, inboxSeen, ...parts }: RunWrite): WriteResult {
    const holder = this.#tables.rows.holder(seq);
    const mine = holder !== undefined && holder.fence === expect.fence && holder.status === expect.status;
    const claimer = expect.fence === null ? (run?.fence ?? null) : null;
    if (!mine || (claimer !== null && !this.#sql.bootLives.get({ fence: claimer })))
      return { applied: false, promoted: [] };
    for (const job of parts.jobs) this.#tables.rows.putJob(seq, job);
    for (const step of parts.steps) this.#tables.rows.putStep(seq, step);
    for (const attempt of parts.attempts) this.#tables.rows.putAttempt(seq, attempt);
    this.#tables.rows.addEvents(seq, parts.events);
    this.#tables.rows.addLogs(seq, parts.logs);
    for (const { n, by } of parts.taken) this.#tables.rows.take(seq, n, by);
    if (run) this.#tables.rows.progress(seq, run);
    // Input for a run with an owner does not set the wake time. The wake time is therefore set here, when the run loses
    // its owner.
    const isParked = run?.fence === null && !FINAL.has(run.status);
    if (isParked && this.#sql.hasUnreadInput.get({ seq, inboxSeen })) this.#sql.wake.run({ seq, at });
    if (parts.wakeParent !== null) this.#tables.rows.wake(parts.wakeParent, at);
    return {
      applied: true,
      promoted: run && FINAL.has(run.status) ? this.#tables.keys.promote(this.#sql.keyOf.get({ seq })!) : [],
    };
  }

  cancelIdle(seq: number, at: number): { cancelled: boolean; promoted: RunRecord[] } {
    const holder = this.#tables.rows.holder(seq);
    if (!holder || holder.fence !== null || FINAL.has(holder.status))
      return { cancelled: false, promoted: [] };
    this.#sql.cancelJobs.run({ seq, at });
    this.#sql.cancelSteps.run({ seq, at });
    this.#sql.cancel.run({ seq, at });
    const how = holder.status === 'waiting' ? [{ at, type: 'run.cancelling' }] : [];
    this.#tables.rows.addEvents(seq, [...how, { at, type: 'run.cancelled' }]);
    const parent = this.#sql.parentOf.get({ seq });
    if (parent != null) this.#tables.rows.wake(parent, at);
    return { cancelled: true, promoted: this.#tables.keys.promote(this.#sql.keyOf.get({ seq })!) };
  }

  beginCleanUp(seq: number, at: number): boolean {
    const begun = this.#sql.beginCleanUp.run({ seq, at }).changes === 1;
    if (begun) this.#tables.rows.addEvents(seq, [{ at, type: 'run.cancelling' }]);
    return begun;
  }

  deliver(
    seq: number,
    entry: Parameters<RunStore['deliver']>[1],
    { once, most, mostBytes, repeat }: Parameters<RunStore['deliver']>[2],
  ): Awaited<ReturnType<RunStore['deliver']>> {
    const before = repeat && this.#tables.rows.digestInInbox(seq, repeat.key);
    if (before !== undefined) return { outcome: before === repeat?.digest ? 'repeated' : 'different' };
    const holder = this.#tables.rows.holder(seq);
    if (!holder || FINAL.has(holder.status)) return { outcome: 'ended' };
    if (once && this.#tables.rows.inInbox(seq, entry.kind, entry.name)) return { outcome: 'taken' };
    if (isSignal(entry.kind)) {
      const { count, bytes } = this.#tables.rows.unreadSignals(seq);
      const isFull = count >= most || bytes + Buffer.byteLength(entry.payload) > mostBytes;
      if (isFull) return { outcome: 'full' };
    }
    const n = this.#tables.rows.putInbox(seq, entry, repeat);
    this.#tables.rows.addEvents(seq, [
      {
        at: entry.at,
        type: isSignal(entry.kind) ? 'signal.received' : `${entry.kind}.received`,
        data: { name: entry.name },
      },
    ]);
    this.#sql.wake.run({ seq, at: entry.at });
    return { outcome: 'delivered', n };
  }
}

function statements(db: Database) {
  return {
    keyOf: db
      .prepare<[{ seq: number }], string | null>('select concurrency_key from run where seq = :seq')
      .pluck(),
    parentOf: db
      .prepare<[{ seq: number }], string | null>('select parent_id from run where seq = :seq')
      .pluck(),
    hasUnreadInput: db.prepare<[{ seq: number; inboxSeen: number }]>(`
      select 1 where
        exists (select 1 from inbox where run_seq = :seq and taken_by is null and n > :inboxSeen)
        or exists (
          select 1 from step join run child on child.id = step.wait ->> '$.runId'
          where step.run_seq = :seq and step.status = 'waiting' and child.finished_at is not null)`),
    bootLives: db.prepare<[{ fence: number }]>(
      'select 1 from boot where fence = :fence and ended_at is null',
    ),
    wake: db.prepare<[{ seq: number; at: number }]>(
      `update run set wake_at = :at where seq = :seq and ${PARKED}`,
    ),
    cancel: db.prepare<[{ seq: number; at: number }]>(`
      update run set status = 'cancelled', ready = 0, reason = null, wake_at = null, finished_at = :at where seq = :seq`),
    beginCleanUp: db.prepare<[{ seq: number; at: number }]>(`
      update run set status = 'cancelling', ending = 'cancelled', ending_at = null, ending_held_at = null, ready = 0, reason = null, wake_at = :at
      where seq = :seq and fence is null and started_at is not null and status in ('queued', 'waiting', 'interrupted')`),
    cancelJobs: db.prepare<[{ seq: number; at: number }]>(`
      update job set status = 'cancelled', finished_at = :at
      where run_seq = :seq and status in ('pending', 'waiting', 'interrupted', 'running')`),
    cancelSteps: db.prepare<[{ seq: number; at: number }]>(`
      update step set status = 'cancelled', wait = null, wake_at = null, finished_at = :at
      where run_seq = :seq and status in ('pending', 'waiting', 'interrupted', 'running')`),
  };
}
