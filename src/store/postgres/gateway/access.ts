import type { AccessStore } from '../../ports/index.ts';
import type { PostgresDatabase } from '../database.ts';
import { appendAudit } from './audit.ts';
import type { PostgresFeed } from './feed.ts';

export const ACCESS = `
  create table svc.access_role (
    subject text collate "C" not null,
    namespace_id text collate "C" not null,
    role text not null,
    host_id text collate "C",
    granted_by text not null,
    granted_at bigint not null,
    primary key (subject, namespace_id)
  );
  create table svc.client_scopes (
    client_id text collate "C" primary key,
    host_id text collate "C" not null,
    scopes text not null
  );`;

/** Roles of callers and scopes of clients. @spec docs/gateway.md "Roles" */
export function postgresAccess(database: PostgresDatabase, feed: PostgresFeed): AccessStore {
  return {
    roles: () =>
      database.run((query) =>
        query.selectFrom('accessRole').selectAll().orderBy('subject').orderBy('namespaceId').execute(),
      ),
    async scopes() {
      const rows = await database.run((query) =>
        query.selectFrom('clientScopes').selectAll().orderBy('clientId').execute(),
      );
      return rows.map((row) => ({ ...row, scopes: JSON.parse(row.scopes) as string[] }));
    },
    grant: (record, audit) =>
      database.transaction(async (query) => {
        const { subject, namespaceId, ...changed } = record;
        const previous = await query
          .selectFrom('accessRole')
          .select('role')
          .where('subject', '=', subject)
          .where('namespaceId', '=', namespaceId)
          .forUpdate()
          .executeTakeFirst();
        await query
          .insertInto('accessRole')
          .values(record)
          .onConflict((conflict) => conflict.columns(['subject', 'namespaceId']).doUpdateSet(changed))
          .execute();
        await feed.add(query, 'access', subject);
        await appendAudit(query, audit);
        return previous?.role ?? null;
      }),
    revoke: ({ subject, namespaceId }, audit) =>
      database.transaction(async (query) => {
        const { numDeletedRows } = await query
          .deleteFrom('accessRole')
          .where('subject', '=', subject)
          .where('namespaceId', '=', namespaceId)
          .executeTakeFirst();
        if (numDeletedRows === 0n) return false;
        await feed.add(query, 'access', subject);
        await appendAudit(query, audit);
        return true;
      }),
    setScopes: ({ clientId, hostId, scopes }, audit) =>
      database.transaction(async (query) => {
        const row = { hostId, scopes: JSON.stringify(scopes) };
        if (scopes.length === 0)
          await query.deleteFrom('clientScopes').where('clientId', '=', clientId).execute();
        else
          await query
            .insertInto('clientScopes')
            .values({ clientId, ...row })
            .onConflict((conflict) => conflict.column('clientId').doUpdateSet(row))
            .execute();
        await feed.add(query, 'access', clientId);
        if (audit) await appendAudit(query, audit);
      }),
  };
}
