import type { AuditEntry } from '../../../contracts/index.ts';
import type { AppendLink, SignedHead } from '../../../kit/security/audit-chain.ts';
import type { AuditFilter, AuditStore } from '../../ports/index.ts';
import type { Database } from '../database.ts';

/** The triggers protect the log against mistakes. The hashes reveal deliberate changes. */
export const AUDIT = `
  create table audit_entry (
    sequence integer primary key,
    at integer not null,
    actor text not null,
    actor_kind text not null,
    token_id text,
    role text,
    action text not null,
    object text not null,
    namespace_id text not null,
    request_id text not null,
    trace_id text not null,
    outcome text not null,
    status integer not null,
    digest text not null,
    anchored integer not null,
    previous_hash text not null,
    hash text not null
  ) strict;
  create table audit_head (
    id integer primary key check (id = 1),
    sequence integer not null,
    hash text not null,
    signature text not null
  ) strict;
  create trigger audit_entry_update before update on audit_entry begin
    select raise(abort, 'The audit log is append-only.');
  end;
  create trigger audit_entry_delete before delete on audit_entry begin
    select raise(abort, 'The audit log is append-only.');
  end;`;

type Row = Omit<AuditEntry, 'anchored'> & { anchored: 0 | 1 };
type Range = Record<keyof AuditFilter, string | number | null>;

/** Adds an entry to the audit log. Must be called in a write transaction. */
export type AppendAudit = (link: AppendLink) => AuditEntry;

export function auditWriter(db: Database): AppendAudit {
  const sql = statements(db);
  return (link) => {
    const { entry, head } = link(sql.head.get());
    sql.add.run({ ...entry, anchored: entry.anchored ? 1 : 0 });
    sql.setHead.run(head);
    return entry;
  };
}

export function sqliteAudit(db: Database): AuditStore {
  const sql = statements(db);
  const append = auditWriter(db);
  return {
    append: (link) => db.write(() => append(link)),
    list: (filter) => db.read(() => sql.list.all(rangeOf(filter)).map(entryOf)),
    after: (sequence, limit) => db.read(() => sql.after.all({ sequence, limit }).map(entryOf)),
    head: () => db.read(() => sql.head.get()),
  };
}

function rangeOf({ namespaceId, actor, action, object, since, until, before, limit }: AuditFilter): Range {
  return {
    namespaceId: namespaceId ?? null,
    actor: actor ?? null,
    action: action ?? null,
    object: object ?? null,
    since: since ?? null,
    until: until ?? null,
    before: before ?? null,
    limit,
  };
}

const entryOf = ({ anchored, ...row }: Row): AuditEntry => ({ ...row, anchored: anchored === 1 });

const COLUMNS = `sequence, at, actor, actor_kind as actorKind, token_id as tokenId, role, action, object,
  namespace_id as namespaceId, request_id as requestId, trace_id as traceId, outcome, status, digest, anchored,
  previous_hash as previousHash, hash`;

function statements(db: Database) {
  return {
    head: db.prepare<[], SignedHead>('select sequence, hash, signature from audit_head'),
    setHead: db.prepare<[SignedHead]>(`
      insert into audit_head (id, sequence, hash, signature) values (1, :sequence, :hash, :signature)
      on conflict (id) do update set sequence = :sequence, hash = :hash, signature = :signature`),
    add: db.prepare<[Row]>(`
      insert into audit_entry (sequence, at, actor, actor_kind, token_id, role, action, object, namespace_id, request_id,
        trace_id, outcome, status, digest, anchored, previous_hash, hash)
      values (:sequence, :at, :actor, :actorKind, :tokenId, :role, :action, :object, :namespaceId, :requestId,
        :traceId, :outcome, :status, :digest, :anchored, :previousHash, :hash)`),
    list: db.prepare<[Range], Row>(`
      select ${COLUMNS} from audit_entry
      where (:before is null or sequence < :before) and (:namespaceId is null or namespace_id = :namespaceId)
        and (:actor is null or actor = :actor) and (:object is null or object = :object)
        and (:action is null or action = :action or (:action like '%.' and substr(action, 1, length(:action)) = :action))
        and (:since is null or at >= :since) and (:until is null or at < :until)
      order by sequence desc limit :limit`),
    after: db.prepare<[{ sequence: number; limit: number }], Row>(
      `select ${COLUMNS} from audit_entry where sequence > :sequence order by sequence limit :limit`,
    ),
  };
}
