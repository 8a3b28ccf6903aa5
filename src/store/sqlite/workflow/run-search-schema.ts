import { hourOf } from '../../hour-of.ts';

const ended = (status: string, row: string): string =>
  status === 'failed' ? `(${row}.status in ('failed', 'timed_out'))` : `(${row}.status = '${status}')`;
const counts = (row: string): string =>
  ['succeeded', 'failed', 'cancelled'].map((status) => ended(status, row)).join(', ');
const change = (status: string): string =>
  `${status} = ${status} + ${ended(status, 'new')} - ${ended(status, 'old')}`;

/**
 * Labels of runs, and counts of workflow runs per hour of their creation, maintained by triggers. `first_seq` and
 * `last_seq` enclose the runs of the hour, so that a search of a time range reads only these runs. @spec docs/decisions/0231
 */
export const RUN_LABELS_AND_HOURS = `
  alter table run add column labels text;
  create table run_label (
    tenant_id text not null,
    label text not null,
    run_seq integer not null,
    primary key (tenant_id, label, run_seq)
  ) strict, without rowid;
  create trigger run_labelled after insert on run when new.labels is not null begin
    insert into run_label select new.tenant_id, key || ':' || value, new.seq from json_each(new.labels);
  end;
  create trigger run_unlabelled after delete on run when old.labels is not null begin
    delete from run_label where tenant_id = old.tenant_id and run_seq = old.seq
      and label in (select key || ':' || value from json_each(old.labels));
  end;

  create table run_hour (
    tenant_id text not null,
    hour integer not null,
    started integer not null,
    succeeded integer not null,
    failed integer not null,
    cancelled integer not null,
    first_seq integer not null,
    last_seq integer not null,
    primary key (tenant_id, hour)
  ) strict, without rowid;
  create index run_hour_age on run_hour (hour);
  insert into run_hour
  select tenant_id, ${hourOf('created_at')}, count(*), sum(status = 'succeeded'), sum(status in ('failed', 'timed_out')),
    sum(status = 'cancelled'), min(seq), max(seq)
  from run where kind = 'workflow' group by 1, 2;
  create trigger run_counted after insert on run when new.kind = 'workflow' begin
    insert into run_hour values (new.tenant_id, ${hourOf('new.created_at')}, 1, ${counts('new')}, new.seq, new.seq)
    on conflict (tenant_id, hour) do update set started = started + 1, succeeded = succeeded + excluded.succeeded,
      failed = failed + excluded.failed, cancelled = cancelled + excluded.cancelled,
      first_seq = min(first_seq, excluded.first_seq), last_seq = max(last_seq, excluded.last_seq);
  end;
  create trigger run_recounted after update of status on run when old.status <> new.status and new.kind = 'workflow' begin
    update run_hour set ${['succeeded', 'failed', 'cancelled'].map(change).join(', ')}
    where tenant_id = new.tenant_id and hour = ${hourOf('new.created_at')};
  end;`;
