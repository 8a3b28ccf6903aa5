import { DATABASE_TIME } from '../../database-clock.ts';

/**
 * Queues of deliveries. `state` and `due_at` are explained in `store/queue-rules.ts`. Rows change often, so their dead
 * versions are removed early: leases would have to skip them.
 */
const TABLES = `
  create table svc.queue (
    queue_id bigint generated always as identity primary key,
    namespace_id text not null,
    name text not null,
    unique (namespace_id, name)
  );
  create table svc.queue_setting (
    namespace_id text not null,
    name text not null,
    settings text not null,
    primary key (namespace_id, name)
  );
  create table svc.queue_item (
    position bigint generated always as identity primary key,
    queue_id bigint not null,
    id text collate "C" not null,
    state smallint not null,
    due_at bigint not null,
    attempt integer not null default 0,
    token text,
    order_key text collate "C",
    delivery_id text,
    received_at bigint not null,
    last_error text,
    body_bytes bigint not null,
    headers text,
    body bytea
  ) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02);
  create unique index queue_item_id on svc.queue_item (queue_id, id);
  create index queue_item_state on svc.queue_item (queue_id, state, due_at, position);
  create index queue_item_key on svc.queue_item (queue_id, order_key, state, position)
    where order_key is not null and state < 4;`;

/** Plans are made once per connection, so they must not depend on the small tables of a new database. */
const INDEX_PLANS = `set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
  set plan_cache_mode = force_generic_plan`;

/**
 * Locks of order keys. Each change that opens or closes an item of a key holds the lock of the key, so that the key has
 * exactly one item that is not blocked, and positions of a key are in commit order.
 */
const KEYS = `
  create function svc.queue_key_lock(queue bigint, key text) returns bigint language sql immutable as
    $$ select hashtextextended(key, queue) $$;
  create function svc.lock_queue_keys(queue bigint, keys text[]) returns void language plpgsql as $$
  declare lock_id bigint;
  begin
    for lock_id in select distinct svc.queue_key_lock(queue, key) as l from unnest(keys) as key where key is not null order by l
    loop
      perform pg_advisory_xact_lock(lock_id);
    end loop;
  end $$;
  create function svc.unblock_queue_keys(queue bigint, keys text[], now_ms bigint) returns void
  language plpgsql ${INDEX_PLANS} as $$
  declare key text;
  begin
    for key in select distinct k from unnest(keys) as k where k is not null loop
      continue when exists (
        select from svc.queue_item where queue_id = queue and order_key = key and state in (0, 1, 3) and state < 4);
      update svc.queue_item set state = case when due_at > now_ms then 1 else 0 end,
        due_at = case when due_at > now_ms then due_at else 0 end
      where position = (
        select position from svc.queue_item where queue_id = queue and order_key = key and state = 2
        order by position limit 1);
    end loop;
  end $$;`;

const PUT = `
  create function svc.put_queue_items(
    queue bigint, ids text[], order_keys text[], delivery_ids text[], received bigint[], delays bigint[], header_texts text[],
    bodies bytea[], now_given bigint
  ) returns setof text language plpgsql ${INDEX_PLANS} as $$
  declare now_ms bigint;
  begin
    perform svc.lock_queue_keys(queue, order_keys);
    now_ms := coalesce(now_given, ${DATABASE_TIME});
    return query
      insert into svc.queue_item (queue_id, id, state, due_at, order_key, delivery_id, received_at, body_bytes, headers, body)
      select queue, i.id, case when i.order_key is not null then 2 when i.delay > 0 then 1 else 0 end,
        case when i.delay > 0 then now_ms + i.delay else 0 end, i.order_key, i.delivery_id, i.received_at,
        octet_length(i.body), i.headers, i.body
      from unnest(ids, order_keys, delivery_ids, received, delays, header_texts, bodies) with ordinality
        as i (id, order_key, delivery_id, received_at, delay, headers, body, n)
      order by i.n
      on conflict (queue_id, id) do nothing
      returning svc.queue_item.id;
    perform svc.unblock_queue_keys(queue, order_keys, now_ms);
  end $$;`;

/** A lease that expires while another change holds the lock of its key ends at the next call. */
const EXPIRE = `
  create function svc.expire_queue_leases(queue bigint, max_attempts integer, error text, now_given bigint)
  returns bigint language plpgsql ${INDEX_PLANS} as $$
  declare
    now_ms bigint := coalesce(now_given, ${DATABASE_TIME});
    ended bigint;
    keys text[];
  begin
    with expired as materialized (
      select position from svc.queue_item
      where queue_id = queue and state = 3 and due_at <= now_ms
        and (order_key is null or pg_try_advisory_xact_lock(svc.queue_key_lock(queue, order_key)))
      order by due_at, position limit 1000 for update skip locked
    ), changed as (
      update svc.queue_item i set state = case when i.attempt >= max_attempts then 4 else 0 end,
        due_at = case when i.attempt >= max_attempts then now_ms else 0 end, last_error = error
      from expired where i.position = expired.position
      returning i.order_key, i.state
    )
    select count(*), array_agg(order_key) filter (where state = 4 and order_key is not null) into ended, keys from changed;
    if keys is not null then
      perform svc.unblock_queue_keys(queue, keys, now_ms);
    end if;
    return ended;
  end $$;`;

/**
 * Gives out items that no other transaction is changing. Only queues with a concurrency limit make leases wait for each
 * other.
 */
const LEASE = `
  create function svc.lease_queue_items(
    queue bigint, most bigint, most_bytes bigint, lease_ms bigint, lease_token text, max_attempts integer, max_leased integer, error text,
    now_given bigint
  ) returns table (
    item bigint, item_id text, delivery text, key text, attempts integer, received bigint, until bigint, header_text text,
    content bytea
  ) language plpgsql ${INDEX_PLANS} as $$
  declare now_ms bigint;
  begin
    if max_leased is not null then
      perform from svc.queue q where q.queue_id = queue for no key update;
    end if;
    now_ms := coalesce(now_given, ${DATABASE_TIME});
    if exists (select from svc.queue_item where queue_id = queue and state = 3 and due_at <= now_ms) then
      perform svc.expire_queue_leases(queue, max_attempts, error, now_ms);
    end if;
    if exists (select from svc.queue_item where queue_id = queue and state = 1 and due_at <= now_ms) then
      update svc.queue_item set state = 0, due_at = 0 where position = any(array(
        select position from svc.queue_item where queue_id = queue and state = 1 and due_at <= now_ms
        order by due_at, position limit 1000 for update skip locked));
    end if;
    if max_leased is not null then
      most := least(most, max_leased - (select count(*) from svc.queue_item where queue_id = queue and state = 3));
    end if;
    return query
      with picked as materialized (
        select position, body_bytes from svc.queue_item where queue_id = queue and state = 0
        order by due_at, position limit greatest(most, 0) for update skip locked
      ), fitting as (
        select position, sum(body_bytes) over (order by position) - body_bytes as bytes_before from picked
      )
      update svc.queue_item i set state = 3, due_at = now_ms + lease_ms, attempt = i.attempt + 1, token = lease_token
      from fitting where i.position = fitting.position and fitting.bytes_before < most_bytes
      returning i.position, i.id, i.delivery_id, i.order_key, i.attempt, i.received_at, i.due_at, i.headers, i.body;
  end $$;`;

/** The rules of \`settle\` in \`store/queue-rules.ts\`. */
const SETTLE = `
  create function svc.settle_queue_leases(
    queue bigint, positions bigint[], tokens text[], kind text, ms bigint, error text, max_attempts integer, now_given bigint
  ) returns table (item bigint, outcome text, until bigint) language plpgsql ${INDEX_PLANS} as $$
  declare
    now_ms bigint;
    keys text[];
  begin
    keys := array(select i.order_key from svc.queue_item i
      where i.position = any(positions) and i.queue_id = queue and i.order_key is not null);
    if cardinality(keys) > 0 then
      perform svc.lock_queue_keys(queue, keys);
    end if;
    now_ms := coalesce(now_given, ${DATABASE_TIME});
    return query
      with held as materialized (
        select i.position, i.state as was, i.attempt,
          case when ms is not null then ms else least(1000 * 2 ^ least(i.attempt - 1, 20), 300000)::bigint end as delay
        from unnest(positions, tokens) as l (position, token)
        join svc.queue_item i on i.position = l.position and i.queue_id = queue and i.token = l.token
        where kind = 'ack' or i.state = 3 and i.due_at > now_ms
        order by i.position for update of i
      ), changed as (
        update svc.queue_item i set
          state = case when kind = 'ack' then 5 when kind = 'extend' then 3
            when h.attempt >= max_attempts then 4 when h.delay = 0 then 0 else 1 end,
          due_at = case when kind = 'ack' then now_ms when kind = 'extend' then now_ms + ms
            when h.attempt >= max_attempts then now_ms when h.delay = 0 then 0 else now_ms + h.delay end,
          token = case when kind = 'nack' then null else i.token end,
          last_error = case when kind = 'nack' then error else i.last_error end,
          headers = case when kind = 'ack' then null else i.headers end,
          body = case when kind = 'ack' then null else i.body end
        from held h where i.position = h.position and h.was <> 5
        returning i.position, i.state, i.due_at, h.delay
      )
      select h.position,
        case when c.position is null or c.state = 5 then 'acked' when c.state = 3 then 'extended'
          when c.state = 4 then 'dead' else 'waiting' end,
        case when c.state = 3 then c.due_at when c.state in (0, 1) then now_ms + c.delay end
      from held h left join changed c on c.position = h.position;
    if cardinality(keys) > 0 and kind <> 'extend' then
      perform svc.unblock_queue_keys(queue, keys, now_ms);
    end if;
  end $$;`;

/** Changes by operators. \`retry\` opens dead items again, and \`remove\` deletes items that are not leased. */
const ADMINISTER = `
  create function svc.retry_queue_items(queue bigint, ids text[], now_given bigint) returns setof text
  language plpgsql ${INDEX_PLANS} as $$
  declare
    keys text[] := array(select order_key from svc.queue_item where queue_id = queue and id = any(ids) and order_key is not null);
  begin
    perform svc.lock_queue_keys(queue, keys);
    return query
      update svc.queue_item i set state = case when i.order_key is null then 0 else 2 end, due_at = 0, attempt = 0, token = null
      where i.queue_id = queue and i.id = any(ids) and i.state = 4 returning i.id;
    perform svc.unblock_queue_keys(queue, keys, coalesce(now_given, ${DATABASE_TIME}));
  end $$;
  create function svc.remove_queue_items(queue bigint, positions bigint[], now_given bigint) returns setof text
  language plpgsql ${INDEX_PLANS} as $$
  declare
    keys text[] := array(select order_key from svc.queue_item where position = any(positions) and order_key is not null);
  begin
    perform svc.lock_queue_keys(queue, keys);
    return query
      delete from svc.queue_item i where i.position = any(positions) and i.queue_id = queue and i.state <> 3 returning i.id;
    perform svc.unblock_queue_keys(queue, keys, coalesce(now_given, ${DATABASE_TIME}));
  end $$;`;

export const QUEUES = `${TABLES} ${KEYS} ${PUT} ${EXPIRE} ${LEASE} ${SETTLE} ${ADMINISTER}`;
