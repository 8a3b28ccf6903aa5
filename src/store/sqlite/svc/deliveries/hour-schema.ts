import { hourOf } from '../../../hour-of.ts';

const succeeded = (row: string): string => `(${row}.status = 'succeeded')`;
const failed = (row: string): string => `(${row}.status in ('failed', 'dead', 'interrupted'))`;
const unhandled = (row: string): string => `(${row}.status in ('refused', 'challenge', 'duplicate'))`;

/**
 * Counts of deliveries per hour of their receipt, maintained by triggers. Older deliveries are not counted, because
 * reading them would block the first start after an upgrade. Retention rewrites rows to free their bodies. A row at or
 * below `last_position` is such a row, and is not counted again. @spec docs/decisions/0231
 */
export const DELIVERY_HOURS = `
  create table delivery_hour (
    namespace_id text not null,
    hour integer not null,
    received integer not null,
    succeeded integer not null,
    failed integer not null,
    unhandled integer not null,
    last_position integer not null,
    primary key (namespace_id, hour)
  ) strict, without rowid;
  create index delivery_hour_age on delivery_hour (hour);
  alter table delivery_progress add column counted_from integer not null default 0;
  update delivery_progress set counted_from = (select coalesce(max(position) + 1, 0) from delivery);

  create trigger delivery_counted after insert on delivery
  when new.position >= (select counted_from from delivery_progress) begin
    insert into delivery_hour
    values (new.namespace_id, ${hourOf('new.received_at')}, 1, ${succeeded('new')}, ${failed('new')}, ${unhandled('new')},
      new.position)
    on conflict (namespace_id, hour) do update set received = received + 1, succeeded = succeeded + excluded.succeeded,
      failed = failed + excluded.failed, unhandled = unhandled + excluded.unhandled, last_position = excluded.last_position
    where excluded.last_position > last_position;
  end;
  create trigger delivery_recounted after update of status on delivery
  when old.status <> new.status and new.position >= (select counted_from from delivery_progress) begin
    update delivery_hour set succeeded = succeeded + ${succeeded('new')} - ${succeeded('old')},
      failed = failed + ${failed('new')} - ${failed('old')},
      unhandled = unhandled + ${unhandled('new')} - ${unhandled('old')}
    where namespace_id = new.namespace_id and hour = ${hourOf('new.received_at')};
  end;`;
