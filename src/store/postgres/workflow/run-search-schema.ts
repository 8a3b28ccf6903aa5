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
 * `run_hour`. @spec docs/decisions/0231
 */
export const RUN_LABELS_AND_HOURS = `
  alter table svc.run add labels text;
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
  create trigger run_counted after insert on svc.run
    referencing new table as added for each statement execute function svc.count_new_runs();
  create trigger run_recounted after update of status on svc.run for each row
    when (old.finished_at is null and new.finished_at is not null and new.kind = 'workflow')
    execute function svc.count_ended_run();
  create trigger run_unlabelled after delete on svc.run for each row
    when (old.labels is not null) execute function svc.remove_run_labels();

  insert into svc.run_hour
  select tenant_id, ${hourOf('created_at')}, count(*), ${ENDED} from svc.run where kind = 'workflow' group by 1, 2;`;
