import type { Migrations } from '../migrate.ts';

/**
 * Unfinished states. Partial indexes repeat this text literally, as SQLite uses them only for the same
 * condition.
 */
export const LIVE = `status in ('queued', 'running', 'waiting', 'interrupted', 'cancelling')`;

/** Runs and clean-ups that wait for a plugin or an operator. Literal for the same reason. */
export const STUCK = `status in ('waiting', 'cancelling') and reason in ('plugin', 'decision')`;

/** Unfinished runs with work in flight at an end of the service. Literal for the same reason. */
export const BLAMED = `crashes + kills > 0 and ${LIVE}`;

/** Waiting runs without an owner. */
export const PARKED = `status in ('waiting', 'cancelling') and fence is null`;

/**
 * Runs and their time-ordered ids are appended. Queries for work use partial indexes, so finished runs cost
 * nothing. Parts are clustered by their run's number.
 */
const RUNS = `
  create table boot (
    fence integer primary key autoincrement,
    boot_id text not null,
    pid integer not null,
    started_at integer not null,
    lease_until integer not null,
    ended_at integer
  ) strict;

  create table definition (
    hash text primary key,
    workflow_id text not null,
    body text not null
  ) strict, without rowid;

  create table run (
    seq integer primary key,
    id text not null unique,
    kind text not null,
    tenant_id text not null,
    workflow_id text not null,
    definition_hash text not null,
    status text not null,
    ready integer not null,
    reason text,
    rank integer not null,
    priority integer not null,
    run_at integer,
    wake_at integer,
    deadline_at integer,
    concurrency_key text,
    concurrency_limit integer,
    fence integer,
    resume_count integer not null,
    stalls integer not null,
    trigger_kind text not null,
    parent_id text,
    parent_step text,
    rerun_of text,
    depth integer not null,
    host_id text not null,
    request_id text not null,
    trace_id text not null,
    created_at integer not null,
    started_at integer,
    finished_at integer,
    input text not null,
    output text,
    error text
  ) strict;
  create index run_tenant on run (tenant_id, seq);
  create index run_live on run (tenant_id, seq) where ${LIVE};
  create index run_unhappy on run (tenant_id, seq) where status in ('failed', 'timed_out', 'cancelled');
  create index run_ready on run (tenant_id, rank desc, seq) where status = 'queued' and ready = 1;
  create index run_wake on run (wake_at) where wake_at is not null;
  create index run_held on run (fence) where fence is not null;
  create index run_interrupted on run (seq) where status = 'interrupted';
  create index run_key on run (concurrency_key, rank desc, seq) where concurrency_key is not null and ${LIVE};
  create unique index run_parent on run (parent_id, parent_step) where parent_id is not null;

  create table job (
    run_seq integer not null,
    key text not null,
    job_id text not null,
    status text not null,
    matrix text,
    outputs text,
    error text,
    started_at integer,
    finished_at integer,
    primary key (run_seq, key)
  ) strict, without rowid;

  create table step (
    run_seq integer not null,
    job_key text not null,
    idx integer not null,
    status text not null,
    attempts integer not null,
    output text,
    error text,
    wait text,
    wake_at integer,
    idempotency_key text,
    ready_at integer,
    started_at integer,
    attempt_at integer,
    finished_at integer,
    primary key (run_seq, job_key, idx)
  ) strict, without rowid;

  create table attempt (
    run_seq integer not null,
    job_key text not null,
    idx integer not null,
    attempt integer not null,
    status text not null,
    error_class text,
    error text,
    started_at integer not null,
    finished_at integer not null,
    primary key (run_seq, job_key, idx, attempt)
  ) strict, without rowid;

  create table run_event (
    run_seq integer not null,
    n integer not null,
    body text not null,
    primary key (run_seq, n)
  ) strict, without rowid;

  create table run_log (
    run_seq integer not null,
    n integer not null,
    body text not null,
    primary key (run_seq, n)
  ) strict, without rowid;

  create table inbox (
    run_seq integer not null,
    n integer not null,
    kind text not null,
    name text not null,
    payload text not null,
    at integer not null,
    taken_by text,
    primary key (run_seq, n)
  ) strict, without rowid;

  create table large_value (
    run_seq integer not null,
    n integer not null,
    body text not null,
    primary key (run_seq, n)
  ) strict, without rowid;

  create table idempotency (
    tenant_id text not null,
    key text not null,
    digest text not null,
    run_id text not null,
    expires_at integer not null,
    primary key (tenant_id, key)
  ) strict, without rowid;
  create index idempotency_expiry on idempotency (expires_at);

  create table usage (
    tenant_id text not null,
    day text not null,
    runs integer not null,
    primary key (tenant_id, day)
  ) strict, without rowid;

  create table schedule (
    id text not null,
    tenant_id text not null,
    workflow_id text not null,
    cron text not null,
    timezone text not null,
    overlap text not null,
    catch_up text not null,
    input text not null,
    paused integer not null,
    next_at integer,
    last_at integer,
    last_run_id text,
    primary key (id)
  ) strict, without rowid;`;

/** Appended by rowid: computing a per-run number before each insert cost four times the insert. */
const APPENDED = ['run_event', 'run_log']
  .map(
    (table) => `
  alter table ${table} rename to ${table}_1;
  create table ${table} (id integer primary key, run_seq integer not null, body text not null) strict;
  insert into ${table} (run_seq, body) select run_seq, body from ${table}_1 order by run_seq, n;
  drop table ${table}_1;
  create index ${table}_run on ${table} (run_seq);`,
  )
  .join('');

/**
 * Steps found by workflow code, traces across services, and the last use of definitions; existing ones count
 * as used now.
 */
const FOUND_STEPS = `
  alter table step add column found text;
  alter table run add column parent_span text;
  alter table definition add column used_at integer not null default 0;
  update definition set used_at = unixepoch() * 1000;`;

/** Without these indexes a service start scans every queued run, and pruning reads every definition. */
const LOOKED_UP = `
  create index run_child on run (parent_id) where parent_id is not null and ${LIVE};
  create index definition_use on definition (used_at);`;

/** Finds a tenant's due runs behind thousands of another tenant's. */
const DUE_OF_TENANT = `
  create index run_wake_tenant on run (tenant_id, wake_at) where wake_at is not null;`;

/** Runs superseded by another run of their concurrency key, until they are cancelled. */
const GIVES_WAY = `
  alter table run add column gives_way integer not null default 0;
  create index run_gives_way on run (seq) where gives_way = 1 and ${LIVE};`;

/** Limits count runs started by callers. `parent_id` is in the index, so that counting reads no rows. */
const LIVE_OF_CALLERS = `
  drop index run_live;
  create index run_live on run (tenant_id, seq, parent_id) where ${LIVE};`;

/**
 * In-flight work and orderly stops of a boot, and the times when attempts were queued, started and waited. An
 * attempt that never started has no start time.
 */
const IN_FLIGHT_AND_TIMES = `
  alter table run add column in_flight integer not null default 0;
  alter table boot add column is_stopping integer not null default 0;
  alter table step add column queued_at integer;
  alter table step add column waiting_at integer;
  alter table attempt rename to attempt_1;
  create table attempt (
    run_seq integer not null,
    job_key text not null,
    idx integer not null,
    attempt integer not null,
    status text not null,
    error_class text,
    error text,
    queued_at integer,
    started_at integer,
    waiting_at integer,
    finished_at integer not null,
    primary key (run_seq, job_key, idx, attempt)
  ) strict, without rowid;
  insert into attempt select run_seq, job_key, idx, attempt, status, error_class, error, started_at, started_at, null, finished_at
    from attempt_1;
  drop table attempt_1;`;

/** The order in which steps of code ended, derived from end times for existing rows. */
const END_ORDER = `
  alter table step add column end_order integer;
  update step set end_order = ended.place
  from (
    select run_seq, job_key, idx, row_number() over (partition by run_seq, job_key order by finished_at, idx) as place
    from step where found is not null and finished_at is not null
  ) as ended
  where step.run_seq = ended.run_seq and step.job_key = ended.job_key and step.idx = ended.idx;`;

/** Stores wait reasons with the run, with an index for plugin and operator waits. */
const WAIT_REASONS = `
  update run set reason = (
    select json_extract(step.wait, '$.for') from step
    where step.run_seq = run.seq and step.status = 'waiting' and step.wait is not null
    order by case json_extract(step.wait, '$.for') when 'decision' then 0 when 'approval' then 1 when 'signal' then 2
      when 'child' then 3 when 'retry' then 4 else 5 end limit 1)
  where status = 'waiting';
  create index run_stuck on run (reason, tenant_id, seq) where status = 'waiting' and reason in ('plugin', 'decision');`;

/** Inbox entries with an idempotency key, kept as long as the run. */
const KEYED_ENTRIES = `
  alter table inbox add column key text;
  alter table inbox add column digest text;
  create unique index inbox_key on inbox (run_seq, key) where key is not null;`;

/** Clean-up of cancelled runs: the final status, and the start of the time limit. */
const CLEAN_UP = `
  alter table run add column ending text;
  alter table run add column ending_at integer;
  update run set ending = 'cancelled' where status = 'cancelling';`;

/** Lets a retried step start a new child after a failure, and find the existing one after a crash. */
const FAILURES = `
  alter table step add column failures integer not null default 0;`;

/** Separates crashes of the service from external kills. `stalls` counted both and becomes `crashes`. */
const DEATHS = `
  alter table run rename column stalls to crashes;
  alter table run add column kills integer not null default 0;
  alter table boot add column had_fault integer not null default 0;
  alter table boot add column oom_kills integer;`;

/** Since when a schedule's plugin or workflow is not loaded. */
const ABSENT_SCHEDULES = `
  alter table schedule add column absent_since integer;`;

/** Adds clean-ups to the index of runs that wait for a plugin or an operator. */
const STUCK_CLEAN_UPS = `
  drop index run_stuck;
  create index run_stuck on run (reason, tenant_id, seq) where ${STUCK};`;

/** Clean-up limits pause while the clean-up waits for others; jobs have limits of their own, as runs do. */
const CLEAN_UP_LIMITS = `
  alter table run add column ending_held_at integer;
  alter table job add column ending text;
  alter table job add column ending_at integer;
  alter table job add column ending_held_at integer;
  create index job_ending on job (run_seq) where ending_at is not null and finished_at is null;`;

/** Runs that may be to blame for a crash are looked up apart from others. */
const BLAMED_RUNS = `
  create index run_blamed on run (seq) where ${BLAMED};`;

/** `workflow.db`. Times in epoch ms. */
export const WORKFLOW_MIGRATIONS: Migrations = [
  RUNS,
  APPENDED,
  FOUND_STEPS,
  LOOKED_UP,
  DUE_OF_TENANT,
  GIVES_WAY,
  LIVE_OF_CALLERS,
  IN_FLIGHT_AND_TIMES,
  END_ORDER,
  WAIT_REASONS,
  KEYED_ENTRIES,
  CLEAN_UP,
  FAILURES,
  DEATHS,
  ABSENT_SCHEDULES,
  STUCK_CLEAN_UPS,
  CLEAN_UP_LIMITS,
  BLAMED_RUNS,
];
