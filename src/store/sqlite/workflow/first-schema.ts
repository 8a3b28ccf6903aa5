import { LIVE } from './conditions.ts';

/** First columns of the table `attempt`. The text must never change, because two released migrations share it. */
export const ATTEMPT_COLUMNS = `run_seq integer not null,
    job_key text not null,
    idx integer not null,
    attempt integer not null,
    status text not null,
    error_class text,
    error text`;

/**
 * First schema of `workflow.db`. Partial indexes cover only unfinished runs, so finished runs do not slow down the
 * queue.
 */
export const FIRST_SCHEMA = `
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
    ${ATTEMPT_COLUMNS},
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
