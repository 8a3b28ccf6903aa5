import { DRAINING_MEMBERS, MEMBERS } from '../members.ts';
import type { Migrations } from '../migrate.ts';
import { FAILED_RUN_FACTS, RECOVERED_RUN_FACTS } from './alert-facts.ts';
import { BLAMED, LIVE, STUCK } from './conditions.ts';
import { END_TASKS } from './end-tasks.ts';
import { ATTEMPT_COLUMNS, FIRST_SCHEMA } from './first-schema.ts';
import { LIST_INDEXES } from './list-indexes.ts';
import { PAUSES } from './pauses.ts';
import { RUN_LABELS_AND_HOURS } from './run-search-schema.ts';
import { SECRET_APPROVALS } from './secret-approvals.ts';
import { SIGNAL_SENDERS } from './sender-schema.ts';
import { RUN_TRACES } from './trace-schema.ts';

/**
 * Numbers the rows of events and log lines per table instead of per run. Computing a number per run took four times as
 * long as the insert.
 */
const ROWIDS_OF_HISTORY = ['run_event', 'run_log']
  .map(
    (table) => `
  alter table ${table} rename to ${table}_1;
  create table ${table} (id integer primary key, run_seq integer not null, body text not null) strict;
  insert into ${table} (run_seq, body) select run_seq, body from ${table}_1 order by run_seq, n;
  drop table ${table}_1;
  create index ${table}_run on ${table} (run_seq);`,
  )
  .join('');

/** Adds the definitions of steps from workflow code, the parent span of runs, and the last use of definitions. */
const FOUND_STEPS = `
  alter table step add column found text;
  alter table run add column parent_span text;
  alter table definition add column used_at integer not null default 0;
  update definition set used_at = unixepoch() * 1000;`;

/**
 * Adds indexes for child runs and for unused definitions. Without these indexes, each start of the service would scan
 * all queued runs.
 */
const CHILD_AND_USE_INDEXES = `
  create index run_child on run (parent_id) where parent_id is not null and ${LIVE};
  create index definition_use on definition (used_at);`;

/** Adds an index that finds the due runs of one tenant without reading the runs of other tenants. */
const DUE_RUNS_OF_TENANT = `
  create index run_wake_tenant on run (tenant_id, wake_at) where wake_at is not null;`;

/** Adds a flag for runs that must be cancelled. A newer run with the same concurrency key replaces such a run. */
const GIVES_WAY = `
  alter table run add column gives_way integer not null default 0;
  create index run_gives_way on run (seq) where gives_way = 1 and ${LIVE};`;

/**
 * Adds `parent_id` to the index of unfinished runs. The limit of concurrent runs excludes child runs and now needs only
 * this index.
 */
const LIVE_OF_CALLERS = `
  drop index run_live;
  create index run_live on run (tenant_id, seq, parent_id) where ${LIVE};`;

/**
 * Adds columns that decide whether an interruption counts as a crash. Also adds the times of attempts. An attempt that
 * never started has no start time.
 */
const IN_FLIGHT_AND_TIMES = `
  alter table run add column in_flight integer not null default 0;
  alter table boot add column is_stopping integer not null default 0;
  alter table step add column queued_at integer;
  alter table step add column waiting_at integer;
  alter table attempt rename to attempt_1;
  create table attempt (
    ${ATTEMPT_COLUMNS},
    queued_at integer,
    started_at integer,
    waiting_at integer,
    finished_at integer not null,
    primary key (run_seq, job_key, idx, attempt)
  ) strict, without rowid;
  insert into attempt select run_seq, job_key, idx, attempt, status, error_class, error, started_at, started_at, null, finished_at
    from attempt_1;
  drop table attempt_1;`;

/** Adds the order in which the steps of workflow code ended. Existing steps get their order from their end times. */
const END_ORDER = `
  alter table step add column end_order integer;
  update step set end_order = ended.place
  from (
    select run_seq, job_key, idx, row_number() over (partition by run_seq, job_key order by finished_at, idx) as place
    from step where found is not null and finished_at is not null
  ) as ended
  where step.run_seq = ended.run_seq and step.job_key = ended.job_key and step.idx = ended.idx;`;

/** Stores why a run waits. Adds an index of the runs that wait for a plugin or an operator. */
const WAIT_REASONS = `
  update run set reason = (
    select json_extract(step.wait, '$.for') from step
    where step.run_seq = run.seq and step.status = 'waiting' and step.wait is not null
    order by case json_extract(step.wait, '$.for') when 'decision' then 0 when 'approval' then 1 when 'signal' then 2
      when 'child' then 3 when 'retry' then 4 else 5 end limit 1)
  where status = 'waiting';
  create index run_stuck on run (reason, tenant_id, seq) where status = 'waiting' and reason in ('plugin', 'decision');`;

/** Adds idempotency keys to inbox entries. An entry with a key is deleted together with its run. */
const KEYED_ENTRIES = `
  alter table inbox add column key text;
  alter table inbox add column digest text;
  create unique index inbox_key on inbox (run_seq, key) where key is not null;`;

/** Adds the final status of a cancelled run, and the start of the time limit of its clean-up. */
const CLEAN_UP = `
  alter table run add column ending text;
  alter table run add column ending_at integer;
  update run set ending = 'cancelled' where status = 'cancelling';`;

/**
 * Adds the number of failures of a step. A retry after a failure starts a new child run. After a crash, the step
 * continues with its existing child run.
 */
const FAILURES = `
  alter table step add column failures integer not null default 0;`;

/** Adds separate counts for crashes and kills. The former column `stalls` counted crashes and kills together. */
const CRASHES_AND_KILLS = `
  alter table run rename column stalls to crashes;
  alter table run add column kills integer not null default 0;
  alter table boot add column had_fault integer not null default 0;
  alter table boot add column oom_kills integer;`;

/** Adds the time since which the plugin or workflow of a schedule has not been loaded. */
const ABSENT_SCHEDULES = `
  alter table schedule add column absent_since integer;`;

/** Adds clean-ups to the index of runs that wait for a plugin or an operator. */
const STUCK_CLEAN_UPS = `
  drop index run_stuck;
  create index run_stuck on run (reason, tenant_id, seq) where ${STUCK};`;

/**
 * Adds columns for the time limits of clean-ups. The limit of a run pauses during waits. A clean-up of a single job has
 * its own limit.
 */
const CLEAN_UP_LIMITS = `
  alter table run add column ending_held_at integer;
  alter table job add column ending text;
  alter table job add column ending_at integer;
  alter table job add column ending_held_at integer;
  create index job_ending on job (run_seq) where ending_at is not null and finished_at is null;`;

/** Adds an index of the runs that might have caused a crash of the service. */
const BLAMED_RUNS = `
  create index run_blamed on run (seq) where ${BLAMED};`;

/**
 * Adds a table of the nodes that have registered a schedule. `fence` is the fence token of the process that registered
 * the schedule last.
 */
const SCHEDULE_NODES = `${MEMBERS}
  create table schedule_node (
    schedule_id text not null,
    instance text not null,
    fence integer not null,
    primary key (schedule_id, instance)
  ) strict, without rowid;`;

/** Adds the release of the schedules that a node has registered, and the order of releases. */
const SCHEDULE_RELEASES = `
  alter table schedule_node add column release text;
  alter table schedule_node add column release_order integer not null default 0;`;

/** Migrations of `workflow.db`. Times are in epoch ms. */
export const WORKFLOW_MIGRATIONS: Migrations = [
  FIRST_SCHEMA,
  ROWIDS_OF_HISTORY,
  FOUND_STEPS,
  CHILD_AND_USE_INDEXES,
  DUE_RUNS_OF_TENANT,
  GIVES_WAY,
  LIVE_OF_CALLERS,
  IN_FLIGHT_AND_TIMES,
  END_ORDER,
  WAIT_REASONS,
  KEYED_ENTRIES,
  CLEAN_UP,
  FAILURES,
  CRASHES_AND_KILLS,
  ABSENT_SCHEDULES,
  STUCK_CLEAN_UPS,
  CLEAN_UP_LIMITS,
  BLAMED_RUNS,
  SCHEDULE_NODES,
  DRAINING_MEMBERS,
  SCHEDULE_RELEASES,
  LIST_INDEXES,
  RUN_TRACES,
  RUN_LABELS_AND_HOURS,
  SIGNAL_SENDERS,
  FAILED_RUN_FACTS,
  SECRET_APPROVALS,
  RECOVERED_RUN_FACTS,
  END_TASKS,
  PAUSES,
];
