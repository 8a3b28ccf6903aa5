import type { Migrations } from '../migrate.ts';
import { KEY_VALUE_USAGE } from './key-value-quota.ts';

/** Table of `ctx.state` and `ctx.cache` entries. `svc.db` has the same table for the platform cache. */
export const KEY_VALUE = `
  create table key_value (
    scope text not null,
    key text not null,
    value text not null,
    expires_at integer,
    primary key (scope, key)
  ) strict, without rowid;
  create index key_value_expiry on key_value (expires_at) where expires_at is not null;`;

/**
 * Table of objects, whose bytes are in files. `object_usage` keeps the total per scope, so that a quota check needs no
 * scan.
 */
const OBJECT = `
  create table object (
    scope text not null,
    key text not null,
    file text not null,
    bytes integer not null,
    modified_at integer not null,
    primary key (scope, key)
  ) strict, without rowid;
  create unique index object_file on object (file);
  create table object_usage (
    scope text primary key,
    bytes integer not null
  ) strict, without rowid;`;

/** Migrations of `state.db`. Times are in epoch ms. */
export const STATE_MIGRATIONS: Migrations = [KEY_VALUE, OBJECT, KEY_VALUE_USAGE];
