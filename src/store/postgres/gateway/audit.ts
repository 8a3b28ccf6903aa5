import { sql as kyselySql, type Transaction } from 'kysely';
import type { AuditEntry } from '../../../contracts/index.ts';
import type { AppendLink, SignedHead } from '../../../kit/security/audit-chain.ts';
import type { AuditStore } from '../../ports/index.ts';
import { BatchWriter } from '../batch-writer.ts';
import type { PostgresDatabase } from '../database.ts';
import type { Tables } from '../tables.ts';

/** The trigger protects the log against mistakes. The hashes reveal deliberate changes. */
export const AUDIT = `
  create table svc.audit_entry (
    sequence bigint primary key,
    at bigint not null,
    actor text collate "C" not null,
    actor_kind text not null,
    token_id text,
    role text,
    action text collate "C" not null,
    object text collate "C" not null,
    namespace_id text collate "C" not null,
    request_id text not null,
    trace_id text not null,
    outcome text not null,
    status integer not null,
    digest text not null,
    anchored boolean not null,
    previous_hash text not null,
    hash text not null
  );
  create table svc.audit_head (
    id integer primary key check (id = 1),
    sequence bigint not null,
    hash text not null,
    signature text not null
  );
  create function svc.keep_audit_entry() returns trigger language plpgsql as $$
  begin
    raise exception 'The audit log is append-only.';
  end $$;
  create trigger audit_entry_kept before update or delete or truncate on svc.audit_entry
    execute function svc.keep_audit_entry();`;

/** Key of the advisory lock that lets one transaction at a time add an entry: the bytes of `svc` and a 3. */
const LOCK_KEY = 0x73766303;

/** Entries of one transaction. Calls that end while a transaction commits share the next one. */
const MAX_BATCH_ENTRIES = 256;

/** Adds an entry as the last statement of a transaction. The lock is held until the commit. */
export async function appendAudit(query: Transaction<Tables>, link: AppendLink): Promise<AuditEntry> {
  const [entry] = await appendAll(query, [link]);
  return entry!;
}

async function appendAll(query: Transaction<Tables>, links: readonly AppendLink[]): Promise<AuditEntry[]> {
  await kyselySql`select pg_advisory_xact_lock(${LOCK_KEY})`.execute(query);
  let last: SignedHead | undefined = await query
    .selectFrom('auditHead')
    .select(['sequence', 'hash', 'signature'])
    .executeTakeFirst();
  const entries: AuditEntry[] = [];
  for (const link of links) {
    const { entry, head } = link(last);
    entries.push(entry);
    last = head;
  }
  await query.insertInto('auditEntry').values(entries).execute();
  const { sequence, hash, signature } = last!;
  await query
    .insertInto('auditHead')
    .values({ id: 1, sequence, hash, signature })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ sequence, hash, signature }))
    .execute();
  return entries;
}

export function postgresAudit(database: PostgresDatabase): AuditStore {
  const writer = new BatchWriter<AppendLink, AuditEntry>({
    write: (links) => database.transaction((query) => appendAll(query, links)),
    sizeOf: () => 1,
    maxRunning: 1,
    maxItems: MAX_BATCH_ENTRIES,
    maxBytes: MAX_BATCH_ENTRIES,
  });
  return {
    append: (link) => writer.add(link),
    list: ({ limit, before, namespaceId, actor, action, object, since, until }) =>
      database.run((query) => {
        let found = query.selectFrom('auditEntry').selectAll();
        if (before !== undefined) found = found.where('sequence', '<', before);
        if (namespaceId !== undefined) found = found.where('namespaceId', '=', namespaceId);
        if (actor !== undefined) found = found.where('actor', '=', actor);
        if (object !== undefined) found = found.where('object', '=', object);
        if (since !== undefined) found = found.where('at', '>=', since);
        if (until !== undefined) found = found.where('at', '<', until);
        if (action?.endsWith('.')) found = found.where(kyselySql<boolean>`starts_with(action, ${action})`);
        else if (action !== undefined) found = found.where('action', '=', action);
        return found.orderBy('sequence', 'desc').limit(limit).execute();
      }),
    after: (sequence, limit) =>
      database.run((query) =>
        query
          .selectFrom('auditEntry')
          .selectAll()
          .where('sequence', '>', sequence)
          .orderBy('sequence')
          .limit(limit)
          .execute(),
      ),
    head: () =>
      database.run((query) =>
        query.selectFrom('auditHead').select(['sequence', 'hash', 'signature']).executeTakeFirst(),
      ),
  };
}
