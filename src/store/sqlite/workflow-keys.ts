import type { RunRecord } from '../ports/index.ts';
import type { Database } from './database.ts';
import { RUN_COLUMNS, type RunRow, type WorkflowRows } from './workflow-rows.ts';
import { LIVE } from './workflow-schema.ts';

/** Concurrency keys: whoever is ready, or further, holds one. To be called inside `db.write`. */
export interface WorkflowKeys {
  hasRoom(key: string, limit: number): boolean;
  /** Ids of unfinished runs of the key: those that hold it, or those that wait for it. */
  runsOf(key: string, which: 'holding' | 'waiting'): string[];
  /** Makes runs ready as long as there is room. */
  promote(key: string | null): RunRecord[];
}

export function workflowKeys(db: Database, rows: WorkflowRows): WorkflowKeys {
  const ofKey = `concurrency_key = :key and concurrency_key is not null and ${LIVE}`;
  const holds = `(status <> 'queued' or ready = 1)`;
  const waits = `status = 'queued' and ready = 0 and reason = 'concurrency'`;
  const held = db
    .prepare<[{ key: string }], number>(`select count(*) from run where ${ofKey} and ${holds}`)
    .pluck();
  const holding = db
    .prepare<[{ key: string }], string>(`select id from run where ${ofKey} and ${holds}`)
    .pluck();
  const waiting = db
    .prepare<[{ key: string }], string>(`select id from run where ${ofKey} and ${waits}`)
    .pluck();
  const first = db.prepare<[{ key: string }], RunRow>(
    `select ${RUN_COLUMNS} from run where ${ofKey} and ${waits} order by rank desc, seq limit 1`,
  );
  const makeReady = db.prepare<[{ seq: number }]>(
    `update run set ready = 1, reason = 'capacity' where seq = :seq`,
  );

  const hasRoom = (key: string, limit: number): boolean => held.get({ key })! < limit;
  return {
    hasRoom,
    runsOf: (key, which) => (which === 'holding' ? holding : waiting).all({ key }),
    promote(key) {
      const promoted: RunRecord[] = [];
      while (key !== null) {
        const row = first.get({ key });
        if (!row || !hasRoom(key, row.concurrencyLimit ?? 1)) break;
        makeReady.run({ seq: row.seq });
        promoted.push(rows.recordOf({ ...row, ready: 1, reason: 'capacity' }));
      }
      return promoted;
    },
  };
}
