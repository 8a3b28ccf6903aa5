import { QUEUE_ITEM_BYTES } from '../../../ports/queues.ts';

/** Size of an item in a trigger. Acked items have no content. */
const sizeOf = (row: 'old' | 'new'): string =>
  `(${row}.state < 5) * (${row}.body_bytes + coalesce(length(${row}.headers), 0) + ${QUEUE_ITEM_BYTES})`;

/**
 * Queues of deliveries. `state` and `due_at` are explained in `store/queue-rules.ts`. Triggers count the items and bytes
 * of each queue, because counting a million rows would block the event loop. Large bodies have a table of their own, so that a
 * lease does not rewrite them.
 */
export const QUEUES = `
  create table queue (
    queue_id integer primary key,
    namespace_id text not null,
    name text not null,
    waiting integer not null default 0,
    leased integer not null default 0,
    dead integer not null default 0,
    bytes integer not null default 0,
    unique (namespace_id, name)
  ) strict;
  create table queue_setting (
    namespace_id text not null,
    name text not null,
    settings text not null,
    primary key (namespace_id, name)
  ) strict, without rowid;
  create table queue_item (
    position integer primary key autoincrement,
    queue_id integer not null,
    id text not null,
    state integer not null,
    due_at integer not null,
    attempt integer not null default 0,
    token text,
    order_key text,
    delivery_id text,
    received_at integer not null,
    last_error text,
    body_bytes integer not null,
    headers text,
    body blob
  ) strict;
  create unique index queue_item_id on queue_item (queue_id, id);
  create index queue_item_state on queue_item (queue_id, state, due_at, position);
  create index queue_item_key on queue_item (queue_id, order_key, state, position)
    where order_key is not null and state < 4;
  create table queue_body (
    position integer primary key references queue_item (position) on delete cascade,
    body blob not null
  ) strict;

  create trigger queue_item_added after insert on queue_item begin
    update queue set waiting = waiting + (new.state < 3), leased = leased + (new.state = 3), dead = dead + (new.state = 4),
      bytes = bytes + ${sizeOf('new')}
    where queue_id = new.queue_id;
  end;
  create trigger queue_item_changed after update of state on queue_item when old.state <> new.state begin
    update queue set waiting = waiting + (new.state < 3) - (old.state < 3),
      leased = leased + (new.state = 3) - (old.state = 3), dead = dead + (new.state = 4) - (old.state = 4),
      bytes = bytes + ${sizeOf('new')} - ${sizeOf('old')}
    where queue_id = new.queue_id;
  end;
  create trigger queue_item_removed after delete on queue_item begin
    update queue set waiting = waiting - (old.state < 3), leased = leased - (old.state = 3), dead = dead - (old.state = 4),
      bytes = bytes - ${sizeOf('old')}
    where queue_id = old.queue_id;
  end;`;

/** Body size in bytes above which a body is stored in `queue_body`. */
export const INLINE_QUEUE_BODY_BYTES = 4096;
