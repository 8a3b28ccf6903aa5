import type { ServiceName } from '../../contracts/index.ts';
import type { Clock } from '../../kit/time/clock.ts';
import type { MemberRecord, MemberRenewal, MemberStore, NewMember } from '../ports/index.ts';
import type { PostgresDatabase } from './database.ts';
import { NOW } from './database-clock.ts';
import { lockName } from './named-lock.ts';

/**
 * Table of members. A fence number is never reused, because other rows can still contain the fences of ended members.
 */
export const MEMBERS = `
  create table svc.member (
    fence bigint generated always as identity primary key,
    kind text not null,
    instance text collate "C" not null,
    url text,
    version text not null,
    release text,
    keys json,
    started_at bigint not null,
    lease_until bigint,
    ended_at bigint
  );`;

export const DRAINING_MEMBERS =
  'alter table svc.member add column is_draining boolean not null default false;';

/** Selects the fence tokens of members that have not ended. */
export const UNENDED_FENCES = 'select fence from svc.member where ended_at is null';

/** Returns an SQL condition that is true if the column refers to no member or to an ended member. */
export function hasNoOwner(column: string): string {
  return `not exists (select from svc.member m where m.fence = ${column} and m.ended_at is null)`;
}

const SELECT_LIVE = `select fence, kind, instance, url, is_draining as "isDraining", version, release, keys,
    started_at as "startedAt", lease_until as "leaseUntil"
  from svc.member
  where kind = :kind and ended_at is null and (lease_until is null or lease_until > ${NOW}) order by fence`;

/** Member store. Leases use the clock of the database, so that all nodes agree on the end of a lease. */
export class PostgresMembers implements MemberStore {
  readonly #database: PostgresDatabase;
  readonly #clock: Clock | undefined;

  /** `clock` replaces the clock of the database in tests. */
  constructor(database: PostgresDatabase, clock?: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  join({ isSole, keys, replaces, ...member }: NewMember): Promise<number> {
    const now = this.#now();
    const { kind } = member;
    return this.#database.transact(async (sql) => {
      // A joining member ends earlier members of its node. Without the lock, two members that join at the same time
      // would not end each other.
      await lockName(sql, `members ${kind}`);
      await sql(
        `update svc.member set ended_at = ${NOW}
         where ended_at is null and kind = :kind
           and (:isSole::boolean or instance = :replaces or starts_with(instance, :replaces || '/'))`,
        { kind, replaces: replaces ?? member.instance, isSole, now },
      );
      const [row] = await sql<{ fence: number }>(
        `insert into svc.member (kind, instance, version, release, keys, started_at, lease_until)
         select :kind, :instance, :version, :release, :keys::json, now, now + :leaseMs::bigint
         from (select ${NOW} as now) as clock returning fence`,
        { ...member, keys: keys && JSON.stringify(keys), now },
      );
      return row!.fence;
    });
  }

  async renew(fence: number, { isDraining = false, ...renewal }: MemberRenewal): Promise<boolean> {
    const renewed = await this.#run<{ fence: number }>(
      `update svc.member set lease_until = ${NOW} + :leaseMs::bigint, url = :url, is_draining = :isDraining
       where fence = :fence and ended_at is null returning fence`,
      { fence, isDraining, ...renewal },
    );
    return renewed.length === 1;
  }

  async leave(fence: number): Promise<void> {
    await this.#run(`update svc.member set ended_at = ${NOW} where fence = :fence and ended_at is null`, {
      fence,
    });
  }

  live(kind: ServiceName): Promise<MemberRecord[]> {
    return this.#run<MemberRecord>(SELECT_LIVE, { kind });
  }

  unended(kind: ServiceName): Promise<number[]> {
    return this.#fences(`${UNENDED_FENCES} and kind = :kind order by fence`, { kind });
  }

  async endExpired(kind: ServiceName, own: number): Promise<number> {
    const ended = await this.#fences(
      `update svc.member set ended_at = ${NOW}
       where kind = :kind and fence <> :own and ended_at is null and lease_until <= ${NOW} returning fence`,
      { kind, own },
    );
    return ended.length;
  }

  unswept(kind: ServiceName): Promise<number[]> {
    return this.#fences(
      'select fence from svc.member where kind = :kind and ended_at is not null order by fence',
      { kind },
    );
  }

  async swept(fences: readonly number[]): Promise<void> {
    await this.#run('delete from svc.member where ended_at is not null and fence = any(:fences)', { fences });
  }

  async #fences(text: string, values: object): Promise<number[]> {
    const rows = await this.#run<{ fence: number }>(text, values);
    return rows.map(({ fence }) => fence);
  }

  #run<Row extends object>(text: string, values: object): Promise<Row[]> {
    return this.#database.read((sql) => sql<Row>(text, { ...values, now: this.#now() }));
  }

  #now(): number | null {
    return this.#clock?.now() ?? null;
  }
}
