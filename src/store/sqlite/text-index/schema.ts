import type { Migrations } from '../migrate.ts';

/** In the data folder. All of it can be made again from `svc.db`: it is in no backup. */
export const TEXT_INDEX_FILE = 'search.db';

/**
 * A segment covers deliveries that were written one after the other; `places` has their positions, then the times of their
 * receipt. `posting` says in which of them a bucket occurs. A segment that is built anew gets another id.
 */
const TEXT_INDEX = `
  create table segment (
    id integer primary key autoincrement,
    first integer not null unique,
    last integer not null,
    newest_at integer not null,
    oldest_at integer not null,
    places blob not null,
    has_open integer not null,
    has_bodies integer not null
  ) strict;
  create table posting (
    segment integer not null,
    bucket integer not null,
    docs blob not null,
    primary key (segment, bucket)
  ) strict, without rowid;
  create table progress (
    database blob,
    indexed_until integer not null
  ) strict;
  insert into progress (indexed_until) values (0);`;

/** How much of the file each segment takes; those of the former version are made again. */
const SEGMENT_BYTES = `
  delete from posting;
  delete from segment;
  update progress set indexed_until = 0;
  alter table segment add column bytes integer not null default 0;`;

/** `search.db`. Times in epoch ms. */
export const TEXT_INDEX_MIGRATIONS: Migrations = [TEXT_INDEX, SEGMENT_BYTES];
