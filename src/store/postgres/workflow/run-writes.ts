import { isSignal } from '../../inbox-kind.ts';
import type { InboxRecord, RunRecord, RunStore } from '../../ports/index.ts';
import type { Sql } from '../named-sql.ts';
import { lockKey, promoteKey } from './concurrency-keys.ts';
import { addEvents } from './history-rows.ts';
import { FINAL, keyOf, lockRun, wakeRun } from './run-rows.ts';
import { PARKED } from './schema.ts';

const UNFINISHED = `status in ('pending', 'waiting', 'interrupted', 'running')`;

/** Cancels a run that has no owner, together with its jobs and steps. */
export async function cancelIdle(
  sql: Sql,
  seq: number,
  at: number,
): Promise<{ cancelled: boolean; promoted: RunRecord[] }> {
  const key = await keyOf(sql, seq);
  await lockKey(sql, key);
  const holder = await lockRun(sql, seq);
  if (!holder || holder.fence !== null || FINAL.has(holder.status)) return { cancelled: false, promoted: [] };
  await sql(
    `update svc.job set status = 'cancelled', finished_at = :at where run_seq = :seq and ${UNFINISHED}`,
    { seq, at },
  );
  await sql(
    `update svc.step set status = 'cancelled', wait = null, wake_at = null, finished_at = :at
     where run_seq = :seq and ${UNFINISHED}`,
    { seq, at },
  );
  const [run] = await sql<{ parentId: string | null }>(
    `update svc.run set status = 'cancelled', ready = false, reason = null, wake_at = null, finished_at = :at
     where seq = :seq returning parent_id as "parentId"`,
    { seq, at },
  );
  const begun = holder.status === 'waiting' ? [{ at, type: 'run.cancelling' }] : [];
  await addEvents(sql, seq, [...begun, { at, type: 'run.cancelled' }]);
  if (run!.parentId !== null) await wakeRun(sql, run!.parentId, at);
  return { cancelled: true, promoted: await promoteKey(sql, key) };
}

/**
 * Starts the clean-up phase of a cancelled run that has started but has no owner. Returns whether the run was changed.
 */
export async function beginCleanUp(sql: Sql, seq: number, at: number): Promise<boolean> {
  const begun = await sql(
    `update svc.run set status = 'cancelling', ending = 'cancelled', ending_at = null, ending_held_at = null, ready = false,
       reason = null, wake_at = :at
     where seq = :seq and fence is null and started_at is not null and status in ('queued', 'waiting', 'interrupted')
     returning seq`,
    { seq, at },
  );
  if (begun.length === 1) await addEvents(sql, seq, [{ at, type: 'run.cancelling' }]);
  return begun.length === 1;
}

/** Adds an entry to the inbox and wakes the run. */
export async function deliver(
  sql: Sql,
  seq: number,
  entry: Omit<InboxRecord, 'n' | 'takenBy'>,
  { once, most, mostBytes, by = 0, repeat }: Parameters<RunStore['deliver']>[2],
): ReturnType<RunStore['deliver']> {
  // The lock on the run's row makes sure that two inbox entries never get the same number.
  const holder = await lockRun(sql, seq);
  const before = repeat && (await deliveredDigest(sql, seq, repeat.key));
  if (before !== undefined) return { outcome: before === repeat?.digest ? 'repeated' : 'different' };
  if (!holder || FINAL.has(holder.status)) return { outcome: 'ended' };
  const { kind, name, payload, at, sentBy = null } = entry;
  const isTaken = once && (await isInInbox(sql, seq, kind, name));
  if (isTaken) return { outcome: 'taken' };
  if (isSignal(kind)) {
    const { count, bytes } = await unreadSignals(sql, seq);
    if (count >= most || bytes + Buffer.byteLength(payload) > mostBytes) return { outcome: 'full' };
  }
  const [row] = await sql<{ n: number }>(
    `insert into svc.run_inbox (run_seq, n, kind, name, payload, at, sent_by, key, digest)
     values (:seq, coalesce((select max(n) from svc.run_inbox where run_seq = :seq), 0) + 1, :kind, :name, :payload, :at,
       :sentBy, :key, :digest)
     returning n`,
    { seq, kind, name, payload, at, sentBy, key: repeat?.key ?? null, digest: repeat?.digest ?? null },
  );
  await addEvents(sql, seq, [
    { at, type: isSignal(kind) ? 'signal.received' : `${kind}.received`, data: { name } },
  ]);
  await sql(
    `update svc.run set wake_at = case when fence is null then :at::bigint else wake_at end,
       notices = notices + (fence is not null)::integer
     where seq = :seq and (${PARKED} or fence <> :by)`,
    { seq, at, by },
  );
  return { outcome: 'delivered', n: row!.n, owner: holder.fence ?? undefined };
}

/** Returns the digest of the inbox entry with this idempotency key. */
export async function deliveredDigest(sql: Sql, seq: number, key: string): Promise<string | undefined> {
  const [row] = await sql<{ digest: string }>(
    'select digest from svc.run_inbox where run_seq = :seq and key = :key',
    { seq, key },
  );
  return row?.digest;
}

async function isInInbox(sql: Sql, seq: number, kind: string, name: string): Promise<boolean> {
  const rows = await sql(
    `select from svc.run_inbox where run_seq = :seq and kind = :kind and name = :name and taken_by is null limit 1`,
    { seq, kind, name },
  );
  return rows.length > 0;
}

async function unreadSignals(sql: Sql, seq: number): Promise<{ count: number; bytes: number }> {
  const [row] = await sql<{ count: number; bytes: number }>(
    `select count(*) as count, coalesce(sum(octet_length(payload)), 0) as bytes from svc.run_inbox
     where run_seq = :seq and kind in ('signal', 'agent_signal') and taken_by is null`,
    { seq },
  );
  return row!;
}
