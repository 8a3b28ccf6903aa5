import { hourOf } from '../../hour-of.ts';

const COLUMNS = `
    tenant_id text collate "C" not null,
    hour bigint not null,
    started bigint not null,
    succeeded bigint not null,
    failed bigint not null,
    cancelled bigint not null,
    first_seq bigint not null,
    last_seq bigint not null`;
const ENDED = `sum((status = 'succeeded')::integer), sum((status in ('failed', 'timed_out'))::integer),
      sum((status = 'cancelled')::integer), min(seq), max(seq)`;
const ended = (row: string): string =>
  `(${row}.status = 'succeeded')::integer, (${row}.status in ('failed', 'timed_out'))::integer,
      (${row}.status = 'cancelled')::integer`;

/**
 * Labels of runs, and counts of workflow runs per hour of their creation. `first_seq` and `last_seq` enclose the runs
 * of the hour, so that a search of a time range reads only these runs. Starts and ends add their own rows to
 * `run_hour_change`, because those that update the same row would wait for each other. Retention adds the changes to
 * `run_hour`. `run_hour_progress` has the numbers of the runs that were added before the triggers. The table of runs
 * is locked last, because nodes wait for this lock. @spec docs/decisions/0231
 */
export const RUN_LABELS_AND_HOURS = `
  create table svc.run_label (
    tenant_id text collate "C" not null,
    label text collate "C" not null,
    run_seq bigint not null,
    primary key (tenant_id, label, run_seq)
  );
  create table svc.run_hour (${COLUMNS}, primary key (tenant_id, hour));
  create table svc.run_hour_change (${COLUMNS})
    with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
  create index run_hour_age on svc.run_hour (hour);
  create index run_hour_change_of on svc.run_hour_change (tenant_id, hour);
  create table svc.run_hour_progress (next_seq bigint not null, last_seq bigint not null);

  create function svc.count_new_runs() returns trigger language plpgsql as $$
  begin
    insert into svc.run_hour_change
    select tenant_id, ${hourOf('created_at')}, count(*), ${ENDED} from added where kind = 'workflow' group by 1, 2;
    insert into svc.run_label (tenant_id, label, run_seq)
    select tenant_id, each.key || ':' || each.value, seq
    from added cross join lateral json_each_text(labels::json) as each where labels is not null;
    return null;
  end $$;
  create function svc.count_ended_run() returns trigger language plpgsql as $$
  begin
    insert into svc.run_hour_change
    values (new.tenant_id, ${hourOf('new.created_at')}, 0, ${ended('new')}, new.seq, new.seq);
    return null;
  end $$;
  create function svc.remove_run_labels() returns trigger language plpgsql as $$
  begin
    delete from svc.run_label using json_each_text(old.labels::json) as each
    where tenant_id = old.tenant_id and label = each.key || ':' || each.value and run_seq = old.seq;
    return null;
  end $$;
  alter table svc.run add labels text;
  create trigger run_counted after insert on svc.run
    referencing new table as added for each statement execute function svc.count_new_runs();
  create trigger run_recounted after update of status on svc.run for each row
    when (old.finished_at is null and new.finished_at is not null and new.kind = 'workflow')
    execute function svc.count_ended_run();
  create trigger run_unlabelled after delete on svc.run for each row
    when (old.labels is not null) execute function svc.remove_run_labels();
  insert into svc.run_hour_progress select coalesce(min(seq), 1), coalesce(max(seq), 0) from svc.run;`;

const ENDED_EARLIER = `count(*) filter (where status = 'succeeded'),
      count(*) filter (where status in ('failed', 'timed_out')), count(*) filter (where status = 'cancelled'),
      min(seq), max(seq)`;
const BATCH_RUNS = 10_000;

/**
 * Counts the next runs that were added before the triggers. The triggers have counted the ends of some of these runs;
 * these ends are still in `run_hour_change`, because retention of this version begins after the migration.
 */
export const RUN_HOURS_OF_EARLIER = `
  with part as (
    update svc.run_hour_progress set next_seq = next_seq + ${BATCH_RUNS} where next_seq <= last_seq
    returning next_seq - ${BATCH_RUNS} as first, least(next_seq - 1, last_seq) as last
  ), ended as materialized (
    select first_seq as seq from svc.run_hour_change
    where started = 0 and first_seq >= (select first from part) and first_seq <= (select last from part)
  ), runs as (
    select tenant_id, ${hourOf('created_at')} as hour, run.seq, case when ended.seq is null then status end as status
    from svc.run left join ended on ended.seq = run.seq
    where run.seq >= (select first from part) and run.seq <= (select last from part) and kind = 'workflow'
  ), counted as (
    insert into svc.run_hour as total (tenant_id, hour, started, succeeded, failed, cancelled, first_seq, last_seq)
    select tenant_id, hour, count(*), ${ENDED_EARLIER}
    from runs group by tenant_id, hour
    on conflict (tenant_id, hour) do update set started = total.started + excluded.started,
      succeeded = total.succeeded + excluded.succeeded, failed = total.failed + excluded.failed,
      cancelled = total.cancelled + excluded.cancelled, first_seq = least(total.first_seq, excluded.first_seq),
      last_seq = greatest(total.last_seq, excluded.last_seq)
  )
  select first from part`;

export const RUN_HOURS_COUNTED = 'drop table svc.run_hour_progress;';
