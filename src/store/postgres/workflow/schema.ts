/**
 * SQL condition for unfinished runs. PostgreSQL uses a partial index only if the query repeats the condition of the
 * index.
 */
export const LIVE = `status in ('queued', 'running', 'waiting', 'interrupted', 'cancelling')`;

/** SQL condition for runs and clean-ups that wait for a plugin or an operator. */
export const STUCK = `status in ('waiting', 'cancelling') and reason in ('plugin', 'decision')`;

/** SQL condition for unfinished runs that were executing when their process crashed or was killed. */
export const BLAMED = `crashes + kills > 0 and ${LIVE}`;

/** SQL condition for waiting runs without an owner. */
export const PARKED = `status in ('waiting', 'cancelling') and fence is null`;

/** SQL condition for runs that have ended. */
export const FINAL = `status in ('succeeded', 'failed', 'timed_out', 'cancelled')`;

/**
 * SQL conditions for unfinished runs of a concurrency key: they hold one of its places, or wait for one. A paused run
 * neither acquires a place nor gives way to a newer run.
 */
export const HOLDS_KEY = `(status <> 'queued' or ready)`;
export const WAITS_FOR_KEY = `status = 'queued' and not ready and reason = 'concurrency' and pause_scope is null`;

/** Columns and indexes with which several processes share the runs of the store. */
export const SHARED_RUNS = `
  alter table svc.boot add member bigint, add instance text collate "C";
  alter table svc.run add notices integer not null default 0, add notices_read integer not null default 0;
  alter table svc.schedule add claimed_by bigint;
  create index run_planned on svc.run (wake_at) where wake_at is not null and status = 'queued';`;

/** Release of the schedules that a node has registered, and the order of releases. */
export const SCHEDULE_RELEASES = `
  alter table svc.schedule_node add column release text, add column release_order bigint not null default 0;`;

/**
 * Indexes for retention. The block range index on the age of deliveries is dropped: pages that new rows reuse keep the
 * age of their deleted rows, so that after some time each query reads the whole table.
 */
export const RETENTION_INDEXES = `
  create index run_usage_day on svc.run_usage (day);
  drop index svc.delivery_age;`;

/** Fences of the processes whose end counts in `kills`. */
export const KILLED_BY = `
  alter table svc.run add killed_by bigint[] not null default '{}';`;

/**
 * Tables of workflows. Partial indexes of unfinished work keep queries fast regardless of the number of finished runs.
 */
export const WORKFLOW = `
  create table svc.boot (
    fence bigint generated always as identity primary key,
    boot_id text not null,
    pid integer not null,
    started_at bigint not null,
    lease_until bigint not null,
    ended_at bigint,
    is_stopping boolean not null default false,
    had_fault boolean not null default false,
    oom_kills bigint
  );

  create table svc.definition (
    hash text collate "C" primary key,
    workflow_id text not null,
    body text not null,
    used_at bigint not null
  );
  create index definition_use on svc.definition (used_at);

  create table svc.run (
    seq bigint generated always as identity primary key,
    id text collate "C" not null unique,
    kind text not null,
    tenant_id text collate "C" not null,
    workflow_id text not null,
    definition_hash text not null,
    status text not null,
    ready boolean not null,
    reason text,
    rank integer not null,
    priority integer not null,
    run_at bigint,
    wake_at bigint,
    deadline_at bigint,
    concurrency_key text collate "C",
    concurrency_limit integer,
    gives_way boolean not null default false,
    fence bigint,
    resume_count integer not null,
    crashes integer not null,
    kills integer not null,
    in_flight boolean not null,
    ending text,
    ending_at bigint,
    ending_held_at bigint,
    trigger_kind text not null,
    parent_id text collate "C",
    parent_step text,
    rerun_of text,
    depth integer not null,
    host_id text not null,
    request_id text not null,
    trace_id text not null,
    parent_span text,
    created_at bigint not null,
    started_at bigint,
    finished_at bigint,
    input text not null,
    output text,
    error text
  ) with (fillfactor = 80);
  create index run_tenant on svc.run (tenant_id, seq);
  create index run_live on svc.run (tenant_id, seq) include (parent_id) where ${LIVE};
  create index run_unsuccessful on svc.run (tenant_id, seq) where status in ('failed', 'timed_out', 'cancelled');
  create index run_ready on svc.run (tenant_id, rank desc, seq) where status = 'queued' and ready;
  create index run_wake on svc.run (wake_at) where wake_at is not null;
  create index run_wake_tenant on svc.run (tenant_id, wake_at) where wake_at is not null;
  create index run_held on svc.run (fence) where fence is not null;
  create index run_interrupted on svc.run (seq) where status = 'interrupted';
  create index run_key on svc.run (concurrency_key, rank desc, seq) where concurrency_key is not null and ${LIVE};
  create unique index run_parent on svc.run (parent_id, parent_step) where parent_id is not null;
  create index run_child on svc.run (parent_id) where parent_id is not null and ${LIVE};
  create index run_gives_way on svc.run (seq) where gives_way and ${LIVE};
  create index run_stuck on svc.run (reason, tenant_id, seq) where ${STUCK};
  create index run_blamed on svc.run (seq) where ${BLAMED};

  create table svc.job (
    run_seq bigint not null,
    key text collate "C" not null,
    job_id text not null,
    status text not null,
    matrix text,
    outputs text,
    error text,
    started_at bigint,
    finished_at bigint,
    ending text,
    ending_at bigint,
    ending_held_at bigint,
    primary key (run_seq, key)
  );
  create index job_ending on svc.job (run_seq) where ending_at is not null and finished_at is null;

  create table svc.step (
    run_seq bigint not null,
    job_key text collate "C" not null,
    idx integer not null,
    found text,
    status text not null,
    attempts integer not null,
    failures integer not null,
    output text,
    error text,
    wait text,
    wake_at bigint,
    idempotency_key text,
    ready_at bigint,
    started_at bigint,
    queued_at bigint,
    attempt_at bigint,
    waiting_at bigint,
    finished_at bigint,
    end_order integer,
    primary key (run_seq, job_key, idx)
  );

  create table svc.attempt (
    run_seq bigint not null,
    job_key text collate "C" not null,
    idx integer not null,
    attempt integer not null,
    status text not null,
    error_class text,
    error text,
    queued_at bigint,
    started_at bigint,
    waiting_at bigint,
    finished_at bigint not null,
    primary key (run_seq, job_key, idx, attempt)
  );

  create table svc.run_event (
    id bigint generated always as identity primary key,
    run_seq bigint not null,
    body text not null
  );
  create index run_event_run on svc.run_event (run_seq, id);

  create table svc.run_log (
    id bigint generated always as identity primary key,
    run_seq bigint not null,
    body text not null
  );
  create index run_log_run on svc.run_log (run_seq, id);

  create table svc.run_inbox (
    run_seq bigint not null,
    n integer not null,
    kind text not null,
    name text not null,
    payload text not null,
    at bigint not null,
    taken_by text,
    key text,
    digest text,
    primary key (run_seq, n)
  );
  create unique index run_inbox_key on svc.run_inbox (run_seq, key) where key is not null;

  create table svc.idempotency_key (
    tenant_id text collate "C" not null,
    key text collate "C" not null,
    digest text not null,
    run_id text not null,
    expires_at bigint not null,
    primary key (tenant_id, key)
  );
  create index idempotency_key_expiry on svc.idempotency_key (expires_at);

  create table svc.run_usage (
    tenant_id text collate "C" not null,
    day text collate "C" not null,
    runs bigint not null,
    primary key (tenant_id, day)
  );

  create table svc.schedule (
    id text collate "C" primary key,
    tenant_id text collate "C" not null,
    workflow_id text not null,
    cron text not null,
    timezone text not null,
    overlap text not null,
    catch_up text not null,
    input text not null,
    paused boolean not null,
    next_at bigint,
    last_at bigint,
    last_run_id text,
    absent_since bigint
  );

  create table svc.schedule_node (
    schedule_id text collate "C" not null,
    instance text collate "C" not null,
    fence bigint not null,
    primary key (schedule_id, instance)
  );`;
