import type { Role } from '../../../contracts/index.ts';
import type { AccessStore, RoleRecord } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import type { AppendAudit } from './audit.ts';
import type { AddToFeed } from './feed.ts';

export const ACCESS = `
  create table access_role (
    subject text not null,
    namespace_id text not null,
    role text not null,
    host_id text,
    granted_by text not null,
    granted_at integer not null,
    primary key (subject, namespace_id)
  ) strict, without rowid;
  create table client_scopes (
    client_id text primary key,
    host_id text not null,
    scopes text not null
  ) strict, without rowid;`;

interface ScopesRow {
  clientId: string;
  hostId: string;
  /** JSON array. */
  scopes: string;
}

/** Roles of callers and scopes of clients. @spec docs/gateway.md "Roles" */
export function sqliteAccess(db: Database, addToFeed: AddToFeed, append: AppendAudit): AccessStore {
  const sql = statements(db);
  return {
    roles: () => db.read(() => sql.roles.all()),
    scopes: () =>
      db.read(() => sql.scopes.all().map((row) => ({ ...row, scopes: JSON.parse(row.scopes) as string[] }))),
    grant: (role, audit) =>
      db.write(() => {
        const previous = sql.role.get(role) ?? null;
        sql.grant.run(role);
        addToFeed('access', role.subject);
        append(audit);
        return previous;
      }),
    revoke: (role, audit) =>
      db.write(() => {
        if (sql.revoke.run(role).changes === 0) return false;
        addToFeed('access', role.subject);
        append(audit);
        return true;
      }),
    async setScopes({ clientId, hostId, scopes }, audit) {
      await db.write(() => {
        if (scopes.length === 0) sql.dropScopes.run({ clientId });
        else sql.setScopes.run({ clientId, hostId, scopes: JSON.stringify(scopes) });
        addToFeed('access', clientId);
        if (audit) append(audit);
      });
    },
  };
}

type Key = Pick<RoleRecord, 'subject' | 'namespaceId'>;

function statements(db: Database) {
  return {
    roles: db.prepare<[], RoleRecord>(`
      select subject, namespace_id as namespaceId, role, host_id as hostId, granted_by as grantedBy, granted_at as grantedAt
      from access_role order by subject, namespace_id`),
    scopes: db.prepare<[], ScopesRow>(
      'select client_id as clientId, host_id as hostId, scopes from client_scopes order by client_id',
    ),
    role: db
      .prepare<[Key], Role>(
        'select role from access_role where subject = :subject and namespace_id = :namespaceId',
      )
      .pluck(),
    grant: db.prepare<[RoleRecord]>(`
      insert into access_role (subject, namespace_id, role, host_id, granted_by, granted_at)
      values (:subject, :namespaceId, :role, :hostId, :grantedBy, :grantedAt)
      on conflict (subject, namespace_id) do update set
        role = excluded.role, host_id = excluded.host_id, granted_by = excluded.granted_by,
        granted_at = excluded.granted_at`),
    revoke: db.prepare<[Key]>(
      'delete from access_role where subject = :subject and namespace_id = :namespaceId',
    ),
    setScopes: db.prepare<[ScopesRow]>(`
      insert into client_scopes (client_id, host_id, scopes) values (:clientId, :hostId, :scopes)
      on conflict (client_id) do update set host_id = excluded.host_id, scopes = excluded.scopes`),
    dropScopes: db.prepare<[{ clientId: string }]>('delete from client_scopes where client_id = :clientId'),
  };
}
