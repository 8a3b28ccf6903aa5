import type { InboxRecord } from '../../ports/index.ts';
import type { Database } from '../database.ts';

type Seq = { seq: number };

export interface UnreadSignals {
  count: number;
  bytes: number;
}

/** Queries on the inbox entries of runs, such as signals and approvals. */
export function inboxRows(db: Database) {
  const sql = statements(db);
  return {
    inbox: (seq: number) => sql.inbox.all({ seq }),
    inInbox: (seq: number, kind: string, name: string) => sql.inInbox.get({ seq, kind, name }) !== undefined,
    unreadSignals: (seq: number): UnreadSignals => sql.unreadSignals.get({ seq })!,
    putInbox: (
      seq: number,
      entry: Omit<InboxRecord, 'n' | 'takenBy'>,
      { key = null, digest = null }: { key?: string | null; digest?: string | null } = {},
    ): number => sql.putInbox.get({ ...entry, sentBy: entry.sentBy ?? null, seq, key, digest })!,
    /** Returns the request digest of the inbox entry with this idempotency key. */
    digestInInbox: (seq: number, key: string) => sql.digestInInbox.get({ seq, key }),
    take: (seq: number, n: number, by: string): void => {
      sql.take.run({ seq, n, by });
    },
  };
}

function statements(db: Database) {
  return {
    inbox: db.prepare<[Seq], InboxRecord>(`
      select n, kind, name, payload, at, sent_by as sentBy, taken_by as takenBy from inbox
      where run_seq = :seq and taken_by is null order by n`),
    inInbox: db.prepare<[{ seq: number; kind: string; name: string }]>(
      'select 1 from inbox where run_seq = :seq and kind = :kind and name = :name and taken_by is null',
    ),
    unreadSignals: db.prepare<[Seq], UnreadSignals>(`
      select count(*) as count, coalesce(sum(octet_length(payload)), 0) as bytes from inbox
      where run_seq = :seq and kind in ('signal', 'agent_signal') and taken_by is null`),
    putInbox: db
      .prepare<
        [Omit<InboxRecord, 'n' | 'takenBy'> & Seq & { key: string | null; digest: string | null }],
        number
      >(`
        insert into inbox (run_seq, n, kind, name, payload, at, sent_by, key, digest)
        values (:seq, coalesce((select max(n) from inbox where run_seq = :seq), 0) + 1, :kind, :name, :payload, :at,
          :sentBy, :key, :digest)
        returning n`)
      .pluck(),
    digestInInbox: db
      .prepare<[{ seq: number; key: string }], string>(
        'select digest from inbox where run_seq = :seq and key = :key',
      )
      .pluck(),
    take: db.prepare<[{ seq: number; n: number; by: string }]>(
      'update inbox set taken_by = :by where run_seq = :seq and n = :n',
    ),
  };
}
