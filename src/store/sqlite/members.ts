import type { ServiceName } from '../../contracts/index.ts';
import type { Clock } from '../../kit/time/clock.ts';
import type { KeyFingerprints, MemberRecord, MemberStore, NewMember } from '../ports/index.ts';
import type { Database } from './database.ts';

/**
 * Table of member processes. `autoincrement` never reuses a fence token, because rows might still contain the tokens of
 * ended members.
 */
export const MEMBERS = `
  create table member (
    fence integer primary key autoincrement,
    kind text not null,
    instance text not null,
    url text,
    version text not null,
    release text,
    keys text,
    started_at integer not null,
    lease_until integer,
    ended_at integer
  ) strict;`;

export const DRAINING_MEMBERS = 'alter table member add column is_draining integer not null default 0;';

export const UNENDED_FENCES = 'select fence from member where ended_at is null';

type Row = Omit<MemberRecord, 'keys' | 'isDraining'> & { keys: string | null; isDraining: 0 | 1 };

/** Store of the member processes that share a database. */
export function sqliteMembers(db: Database, clock: Clock): MemberStore {
  const sql = statements(db);
  return {
    join: (member) => db.write(() => join(sql, member, clock.now())),
    renew: (fence, { leaseMs, url, isDraining = false }) =>
      db.write(() => {
        const leaseUntil = leaseMs === null ? null : clock.now() + leaseMs;
        return sql.renew.run({ fence, leaseUntil, url, isDraining: isDraining ? 1 : 0 }).changes === 1;
      }),
    async leave(fence) {
      await db.write(() => sql.end.run({ fence, now: clock.now() }));
    },
    live: (kind) => db.read(() => sql.live.all({ kind, now: clock.now() }).map(recordOf)),
    unended: (kind) => db.read(() => sql.unended.all({ kind })),
    endExpired: (kind, own) => db.write(() => sql.endExpired.run({ kind, own, now: clock.now() }).changes),
    unswept: (kind) => db.read(() => sql.unswept.all({ kind })),
    async swept(fences) {
      await db.write(() => sql.remove.run({ fences: JSON.stringify(fences) }));
    },
  };
}

function join(
  sql: ReturnType<typeof statements>,
  { kind, instance, replaces = instance, version, release, keys, leaseMs, isSole }: NewMember,
  now: number,
): number {
  sql.endFormer.run({ kind, replaces, isSole: isSole ? 1 : 0, now });
  const leaseUntil = leaseMs === null ? null : now + leaseMs;
  const row = { kind, instance, version, release, now, leaseUntil, keys: keys && JSON.stringify(keys) };
  return Number(sql.add.run(row).lastInsertRowid);
}

function recordOf({ keys, isDraining, ...row }: Row): MemberRecord {
  return {
    ...row,
    isDraining: isDraining === 1,
    keys: keys === null ? null : (JSON.parse(keys) as KeyFingerprints),
  };
}

function statements(db: Database) {
  return {
    endFormer: db.prepare<[{ kind: ServiceName; replaces: string; isSole: 0 | 1; now: number }]>(`
      update member set ended_at = :now
      where ended_at is null and kind = :kind and (:isSole = 1 or instance = :replaces
        or substr(instance, 1, length(:replaces) + 1) = :replaces || '/')`),
    add: db.prepare<
      [Pick<Row, 'kind' | 'instance' | 'version' | 'release' | 'keys' | 'leaseUntil'> & { now: number }]
    >(`
      insert into member (kind, instance, version, release, keys, started_at, lease_until)
      values (:kind, :instance, :version, :release, :keys, :now, :leaseUntil)`),
    renew: db.prepare<[Pick<Row, 'fence' | 'leaseUntil' | 'url' | 'isDraining'>]>(`
      update member set lease_until = :leaseUntil, url = :url, is_draining = :isDraining
      where fence = :fence and ended_at is null`),
    end: db.prepare<[{ fence: number; now: number }]>(
      'update member set ended_at = :now where fence = :fence and ended_at is null',
    ),
    live: db.prepare<[{ kind: ServiceName; now: number }], Row>(`
      select fence, kind, instance, url, is_draining as isDraining, version, release, keys,
        started_at as startedAt, lease_until as leaseUntil
      from member
      where kind = :kind and ended_at is null and (lease_until is null or lease_until > :now) order by fence`),
    unended: db.prepare<[{ kind: ServiceName }], number>(`${UNENDED_FENCES} and kind = :kind`).pluck(),
    endExpired: db.prepare<[{ kind: ServiceName; own: number; now: number }]>(`
      update member set ended_at = :now
      where kind = :kind and fence <> :own and ended_at is null and lease_until <= :now`),
    unswept: db
      .prepare<[{ kind: ServiceName }], number>(
        'select fence from member where kind = :kind and ended_at is not null order by fence',
      )
      .pluck(),
    remove: db.prepare<[{ fences: string }]>(
      'delete from member where ended_at is not null and fence in (select value from json_each(:fences))',
    ),
  };
}
