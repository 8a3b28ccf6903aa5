/** Returns the DDL of a key-value table. Keys are compared by bytes, as the interface KeyValueStore requires. */
function keyValueTable(name: string): string {
  return `
  create table svc.${name} (
    scope text collate "C" not null,
    key text collate "C" not null,
    value text not null,
    expires_at bigint,
    primary key (scope, key)
  );
  create index ${name}_expiry on svc.${name} (expires_at) where expires_at is not null;`;
}

/**
 * Table of the platform cache. The table is crash-safe, because webhook pauses and revisions that nodes share must
 * survive a crash.
 */
export const CACHE_ENTRIES = keyValueTable('cache_entry');

/** Table of state entries. Triggers maintain the usage per scope, so that no write can bypass the quota. */
export const STATE_ENTRIES = `${keyValueTable('state_entry')}
  create table svc.state_entry_usage (
    scope text collate "C" primary key,
    keys bigint not null,
    bytes bigint not null
  );
  create function svc.count_state_entry() returns trigger language plpgsql as $$
  declare
    keys bigint := 0;
    bytes bigint := 0;
  begin
    if tg_op <> 'INSERT' then
      keys := -1;
      bytes := -octet_length(old.key) - octet_length(old.value);
    end if;
    if tg_op <> 'DELETE' then
      keys := keys + 1;
      bytes := bytes + octet_length(new.key) + octet_length(new.value);
    end if;
    insert into svc.state_entry_usage as used (scope, keys, bytes)
    values (coalesce(new.scope, old.scope), keys, bytes)
    on conflict (scope) do update set keys = used.keys + excluded.keys, bytes = used.bytes + excluded.bytes;
    return null;
  end $$;
  create trigger state_entry_counted after insert or delete or update of value on svc.state_entry
    for each row execute function svc.count_state_entry();`;

/** Tables of objects. Contents are split into chunks, so that no read or write needs one huge value. */
export const OBJECTS = `
  create table svc.state_object (
    id bigint generated always as identity primary key,
    scope text collate "C" not null,
    key text collate "C" not null,
    bytes bigint not null,
    modified_at bigint not null,
    unique (scope, key)
  );
  create table svc.state_object_chunk (
    object_id bigint not null references svc.state_object (id) on delete cascade,
    n integer not null,
    data bytea not null,
    primary key (object_id, n)
  );
  alter table svc.state_object_chunk alter column data set storage external;
  create table svc.state_object_usage (
    scope text collate "C" primary key,
    bytes bigint not null
  );`;

/**
 * Tables of vectors. Each write of a collection gets the next revision, so that the index of a node can read all changes
 * since its last revision. Deleted vectors stay as rows without a vector, except for those up to the revision
 * `pruned`.
 */
export const VECTORS = `
  create table svc.vector_collection (
    id bigint generated always as identity primary key,
    instance uuid not null default gen_random_uuid(),
    scope text collate "C" not null,
    name text collate "C" not null,
    dimensions integer not null,
    revision bigint not null default 0,
    items bigint not null default 0,
    deleted bigint not null default 0,
    pruned bigint not null default 0,
    unique (scope, name)
  );
  create table svc.vector_item (
    collection bigint not null references svc.vector_collection (id) on delete cascade,
    item_id text collate "C" not null,
    revision bigint not null,
    vector bytea,
    metadata text not null,
    primary key (collection, item_id)
  );
  create index vector_item_revision on svc.vector_item (collection, revision, item_id);
  alter table svc.vector_item alter column vector set storage external;`;
