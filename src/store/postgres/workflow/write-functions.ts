import { FINAL, HOLDS_KEY, LIVE, PARKED, WAITS_FOR_KEY } from './schema.ts';

/** Plans are made once per connection, so they must not depend on the small tables of a new database. */
const INDEX_PLANS = `set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
  set plan_cache_mode = force_generic_plan`;

/** A batch gives up after this time, so that one locked run does not hold up the others. */
const LOCK_TIMEOUT_MS = 1000;

/** Writes jobs, steps, attempts, events and log lines of the runs in `runs`. */
const PUT_PARTS = `
  create function svc.put_run_parts(runs bigint[], jobs json, steps json, attempts json, events json, logs json)
  returns void language plpgsql as $$
  #variable_conflict use_column
  begin
    if jobs::text <> '[]' then
      insert into svc.job (run_seq, key, job_id, status, matrix, outputs, error, started_at, finished_at, ending, ending_at,
        ending_held_at)
      select run_seq, key, job_id, status, matrix, outputs, error, started_at, finished_at, ending, ending_at, ending_held_at
      from json_populate_recordset(null::svc.job, jobs) where run_seq = any(runs)
      on conflict (run_seq, key) do update set status = excluded.status, outputs = excluded.outputs,
        error = excluded.error, started_at = excluded.started_at, finished_at = excluded.finished_at,
        ending = excluded.ending, ending_at = excluded.ending_at, ending_held_at = excluded.ending_held_at;
    end if;
    -- The definition of a step (found) never changes, so only the first write stores it.
    if steps::text <> '[]' then
      insert into svc.step (run_seq, job_key, idx, found, status, attempts, failures, output, error, wait, wake_at,
        idempotency_key, ready_at, started_at, queued_at, attempt_at, waiting_at, finished_at, end_order)
      select run_seq, job_key, idx, found, status, attempts, failures, output, error, wait, wake_at, idempotency_key,
        ready_at, started_at, queued_at, attempt_at, waiting_at, finished_at, end_order
      from json_populate_recordset(null::svc.step, steps) where run_seq = any(runs)
      on conflict (run_seq, job_key, idx) do update set status = excluded.status, attempts = excluded.attempts,
        failures = excluded.failures, output = excluded.output, error = excluded.error, wait = excluded.wait,
        wake_at = excluded.wake_at, idempotency_key = excluded.idempotency_key, ready_at = excluded.ready_at,
        started_at = excluded.started_at, queued_at = excluded.queued_at, attempt_at = excluded.attempt_at,
        waiting_at = excluded.waiting_at, finished_at = excluded.finished_at, end_order = excluded.end_order;
    end if;
    if attempts::text <> '[]' then
      insert into svc.attempt (run_seq, job_key, idx, attempt, status, error_class, error, queued_at, started_at, waiting_at,
        finished_at)
      select run_seq, job_key, idx, attempt, status, error_class, error, queued_at, started_at, waiting_at, finished_at
      from json_populate_recordset(null::svc.attempt, attempts) where run_seq = any(runs)
      on conflict (run_seq, job_key, idx, attempt) do update set status = excluded.status,
        error_class = excluded.error_class, error = excluded.error, queued_at = excluded.queued_at,
        started_at = excluded.started_at, waiting_at = excluded.waiting_at, finished_at = excluded.finished_at;
    end if;
    if events::text <> '[]' then
      insert into svc.run_event (run_seq, body)
      select run_seq, body from json_populate_recordset(null::svc.run_event, events) where run_seq = any(runs);
    end if;
    if logs::text <> '[]' then
      insert into svc.run_log (run_seq, body)
      select run_seq, body from json_populate_recordset(null::svc.run_log, logs) where run_seq = any(runs);
    end if;
  end $$;`;

/**
 * Makes queued runs of a concurrency key ready, up to the limit of the key. Returns these runs. The caller must hold the
 * lock of the key. With `rechecks`, skips runs that no longer match `waits` when they are locked.
 */
const promoteKey = (create: string, waits: string, rechecks: boolean): string => `
  ${create} svc.promote_key(freed text) returns setof bigint language plpgsql ${INDEX_PLANS} as $$
  declare next record;
  begin
    loop
      select seq, coalesce(concurrency_limit, 1) as most into next from svc.run
      where concurrency_key = freed and ${LIVE} and ${waits} and not gives_way order by rank desc, seq limit 1;
      exit when not found or (
        select count(*) from svc.run where concurrency_key = freed and ${LIVE} and ${HOLDS_KEY}) >= next.most;
      update svc.run set ready = true, reason = 'capacity' where seq = next.seq${rechecks ? ` and ${waits}; continue when not found` : ''};
      return next next.seq;
    end loop;
  end $$;`;

const WRITE_TYPES = `
  create type svc.run_write as (
    seq bigint, expected_fence bigint, expected_status text, inbox_seen integer, wake_parent text, at bigint, changed boolean,
    status text, ready boolean, reason text, rank integer, wake_at bigint, deadline_at bigint, fence bigint,
    resume_count integer, crashes integer, kills integer, in_flight boolean, ending text, ending_at bigint,
    ending_held_at bigint, output text, error text, started_at bigint, finished_at bigint
  );
  create type svc.taken_entry as (run_seq bigint, n integer, taken_by text);
`;

/**
 * Writes the changes of runs, each at most once in `writes`. Skips a run whose fence or status differs from the expected
 * one, and a claim by a dead process. Returns the other runs, and the runs that became ready. `more` are assignments of
 * further columns.
 */
const writeRuns = (create: string, more = ''): string => `
  ${create} svc.write_runs(
    writes json, jobs json, steps json, attempts json, events json, logs json, taken json, out applied bigint[],
    out promoted bigint[]
  ) language plpgsql ${INDEX_PLANS} set lock_timeout = ${LOCK_TIMEOUT_MS} as $$
  declare
    all_writes svc.run_write[] := array(select w from json_populate_recordset(null::svc.run_write, writes) as w);
    ended bigint[] := array(select seq from unnest(all_writes) where ${FINAL});
    claimers bigint[] := array(select fence from unnest(all_writes) where expected_fence is null and fence is not null);
    parked bigint[] := array(select seq from unnest(all_writes) where changed and fence is null and not ${FINAL});
    keys text[] := '{}';
    parents bigint[] := '{}';
  begin
    -- Locks are taken in the order of all transactions: keys, then runs with children before their parents, then boots.
    if ended <> '{}' then
      keys := array(select distinct concurrency_key from svc.run
        where seq = any(ended) and concurrency_key is not null order by 1);
      perform pg_advisory_xact_lock(hashtextextended('key ' || key, 0)) from unnest(keys) as key;
      -- Parents of the writer are locked too: another batch of the writer may park them at the same time.
      parents := array(select run.seq from unnest(all_writes) as w join svc.run on run.id = w.wake_parent);
    end if;
    perform from (select seq from svc.run
      where seq = any(parents || array(select seq from unnest(all_writes))) order by seq desc for update) as locked;
    if claimers <> '{}' then
      claimers := array(select fence from (select fence from svc.boot
        where fence = any(claimers) and ended_at is null order by fence for share) as alive);
    end if;

    applied := array(select w.seq from unnest(all_writes) as w join svc.run using (seq)
      where run.fence is not distinct from w.expected_fence and run.status = w.expected_status
        and (w.expected_fence is not null or w.fence is null or w.fence = any(claimers)));
    perform svc.put_run_parts(applied, jobs, steps, attempts, events, logs);
    if taken::text <> '[]' then
      update svc.run_inbox as entry set taken_by = t.taken_by
      from json_populate_recordset(null::svc.taken_entry, taken) as t
      where entry.run_seq = t.run_seq and entry.n = t.n and t.run_seq = any(applied);
    end if;
    update svc.run set status = w.status, ready = w.ready, reason = w.reason, rank = w.rank, wake_at = w.wake_at,
      deadline_at = w.deadline_at, fence = w.fence, resume_count = w.resume_count,
      -- The owner only resets the counts of crashes and kills. Another process may have changed them meanwhile.
      crashes = case when w.crashes + w.kills = 0 then 0 else run.crashes end,
      kills = case when w.crashes + w.kills = 0 then 0 else run.kills end,
      in_flight = w.in_flight, ending = w.ending, ending_at = w.ending_at, ending_held_at = w.ending_held_at,
      output = w.output, error = w.error, started_at = w.started_at, finished_at = w.finished_at${more}
    from unnest(all_writes) as w where run.seq = w.seq and w.changed and w.seq = any(applied);

    -- Input and notices for a run with an owner do not set the wake time. The wake time is therefore set here, when the
    -- run loses its owner.
    if parked <> '{}' then
      update svc.run set wake_at = w.at from (
        select seq, inbox_seen, at from unnest(all_writes) where seq = any(parked) and seq = any(applied)
      ) as w where run.seq = w.seq and ${PARKED} and (
        run.notices > run.notices_read or exists (
          select from svc.run_inbox as entry
          where entry.run_seq = w.seq and entry.taken_by is null and entry.n > w.inbox_seen
        ) or exists (
          select from svc.step join svc.run as child on child.id = step.wait::jsonb ->> 'runId'
          where step.run_seq = w.seq and step.status = 'waiting' and child.finished_at is not null));
    end if;
    update svc.run set wake_at = case when run.fence is null then w.at else run.wake_at end,
      notices = notices + (run.fence is not null)::integer
    from (
      select wake_parent, at, coalesce(expected_fence, fence) as writer from unnest(all_writes)
      where wake_parent is not null and seq = any(applied)
    ) as w where run.id = w.wake_parent
      and (${PARKED} or (run.fence is not null and run.fence is distinct from w.writer));

    -- The keys of writes that were skipped are promoted too, which changes nothing.
    promoted := array(select svc.promote_key(key) from unnest(keys) as key);
  end $$;`;

/** Functions that write the progress of many runs in one round trip and one transaction. */
export const RUN_WRITE_FUNCTIONS = [
  PUT_PARTS,
  promoteKey('create function', `status = 'queued' and not ready and reason = 'concurrency'`, false),
  `${WRITE_TYPES}${writeRuns('create function')}`,
].join(' ');

/**
 * Functions of stores with pauses. A paused run is not promoted. The pause of a workflow leaves runs that have begun
 * alone, also if it was stored while the run was claimed.
 */
export const PAUSE_WRITE_FUNCTIONS = [
  promoteKey('create or replace function', WAITS_FOR_KEY, true),
  writeRuns('create or replace function', ", pause_scope = nullif(run.pause_scope, 'workflow')"),
].join(' ');
