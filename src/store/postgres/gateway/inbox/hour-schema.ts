import { hourOf } from '../../../hour-of.ts';

const COUNTED = ['succeeded', 'failed', 'unhandled'] as const;
const STATUSES: Record<(typeof COUNTED)[number], string> = {
  succeeded: `('succeeded')`,
  failed: `('failed', 'dead', 'interrupted')`,
  unhandled: `('refused', 'challenge', 'duplicate')`,
};
const is = (group: (typeof COUNTED)[number], row: string): string =>
  `(${row}.status in ${STATUSES[group]})::integer`;
const sums = COUNTED.map((group) => `sum(${is(group, 'n')})`).join(', ');
const changes = COUNTED.map((group) => `sum(${is(group, 'n')} - ${is(group, 'o')})`).join(', ');
const hasChanged = COUNTED.map((group) => `${is(group, 'n')} <> ${is(group, 'o')}`).join(' or ');

const COLUMNS = `
    namespace_id text collate "C" not null,
    hour bigint not null,
    received bigint not null,
    succeeded bigint not null,
    failed bigint not null,
    unhandled bigint not null`;

/**
 * Counts of deliveries per hour of their receipt. Each statement adds its own rows to `delivery_hour_change`, because
 * gateways that update the same row would wait for each other. Retention adds the changes to `delivery_hour`.
 * Deliveries of before are not counted, because reading them would block the upgrade. @spec docs/decisions/0231
 */
export const DELIVERY_HOURS = `
  create table svc.delivery_hour (${COLUMNS}, primary key (namespace_id, hour));
  create table svc.delivery_hour_change (${COLUMNS})
    with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
  create index delivery_hour_age on svc.delivery_hour (hour);
  create index delivery_hour_change_of on svc.delivery_hour_change (namespace_id, hour);

  create function svc.count_new_deliveries() returns trigger language plpgsql as $$
  begin
    insert into svc.delivery_hour_change
    select n.namespace_id, ${hourOf('n.received_at')}, count(*), ${sums} from added n group by 1, 2;
    return null;
  end $$;
  create function svc.count_changed_deliveries() returns trigger language plpgsql as $$
  begin
    insert into svc.delivery_hour_change
    select n.namespace_id, ${hourOf('n.received_at')}, 0, ${changes}
    from after_change n join before_change o using (position) where ${hasChanged} group by 1, 2;
    return null;
  end $$;
  create trigger delivery_counted after insert on svc.delivery
    referencing new table as added for each statement execute function svc.count_new_deliveries();
  create trigger delivery_recounted after update on svc.delivery
    referencing old table as before_change new table as after_change
    for each statement execute function svc.count_changed_deliveries();`;
