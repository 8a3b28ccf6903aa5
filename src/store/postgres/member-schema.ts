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

/** Schema version that each member knows. Null in rows of programs that were built before this column existed. */
export const MEMBER_SCHEMA = 'alter table svc.member add column schema integer;';

export const DRAINING_MEMBERS =
  'alter table svc.member add column is_draining boolean not null default false;';
