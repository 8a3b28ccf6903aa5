import { hash } from 'node:crypto';
import type { Statement } from 'better-sqlite3';
import type { MarkerState } from '../../../ports/index.ts';
import type { Database } from '../../database.ts';

/**
 * Size of a digest, which is the first half of a SHA-256 hash. To forge a marker, an attacker would need a second
 * preimage of 128 bits.
 */
const DIGEST_BYTES = 16;

export interface MarkerRow {
  id: number;
  digest: Buffer;
  state: MarkerState;
  expiresAt: number;
}

/** Cache of the latest digest. Each delivery needs its digest twice, usually in immediate succession. */
let latest: { key: string; digest: Buffer } = { key: '', digest: Buffer.alloc(0) };

export function digestOf(key: string): Buffer {
  if (key !== latest.key) latest = { key, digest: hash('sha256', key, 'buffer').subarray(0, DIGEST_BYTES) };
  return latest.digest;
}

export interface MarkerStatements {
  row: Statement<[number], MarkerRow>;
  since: Statement<[number], { id: number; digest: Buffer }>;
  /** Selects the lowest marker id. If the table is empty, selects the next id to assign. */
  oldest: Statement<[], { id: number }>;
  lastId: Statement<[], { id: number }>;
  anyOld: Statement<[]>;
  old: Statement<[Buffer, number]>;
}

export function markerStatements(db: Database): MarkerStatements {
  return {
    row: db.prepare('select id, digest, state, expires_at as expiresAt from delivery_marker where id = ?'),
    since: db.prepare('select id, digest from delivery_marker where id > ? order by id'),
    oldest: db.prepare(`select coalesce(
      (select min(id) from delivery_marker),
      (select seq + 1 from sqlite_sequence where name = 'delivery_marker'), 0) as id`),
    lastId: db.prepare("select seq as id from sqlite_sequence where name = 'delivery_marker'"),
    anyOld: db.prepare('select 1 from delivery_marker_old limit 1'),
    old: db.prepare('select 1 from delivery_marker_old where digest = ? and expires_at > ?'),
  };
}
