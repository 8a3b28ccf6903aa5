import type { Migrations } from '../../migrate.ts';

/** Name of the index file in the data folder. Backups skip the file, because the index can be rebuilt from `svc.db`. */
export const TEXT_INDEX_FILE = 'search.db';

/**
 * Tables of the text index. A segment covers a range of deliveries. A `posting` row lists the deliveries of a bucket,
 * which is the hash of a trigram or field value.
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

/** Adds the size of each segment. Existing segments are deleted and built again. */
const SEGMENT_BYTES = `
  delete from posting;
  delete from segment;
  update progress set indexed_until = 0;
  alter table segment add column bytes integer not null default 0;`;

/** Adds the trace ids of deliveries. Existing segments are deleted and built again. */
const TRACE_IDS = `
  delete from posting;
  delete from segment;
  update progress set indexed_until = 0;`;

/** Adds the headers of deliveries. Existing segments are deleted and built again. */
const HEADERS = `
  delete from posting;
  delete from segment;
  update progress set indexed_until = 0;`;

/** Migrations of `search.db`. Times are in epoch ms. */
export const TEXT_INDEX_MIGRATIONS: Migrations = [TEXT_INDEX, SEGMENT_BYTES, TRACE_IDS, HEADERS];
