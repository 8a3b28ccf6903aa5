import type { ConcurrencyStrategy, RunRecord } from '../../ports/index.ts';
import type { Database } from '../database.ts';
import { LIVE, WAITS_FOR_KEY } from './conditions.ts';
import type { WorkflowRows } from './rows.ts';
import { RUN_COLUMNS, type RunRow } from './run-rows.ts';

/** Result of acquiring a concurrency key. If `hasRoom` is false, the run is either rejected or waits. */
export interface KeyAcquisition {
  hasRoom: boolean;
  rejected: boolean;
  /** Ids of the runs that are cancelled to make room for this run. */
  supersedes: string[];
}

/**
 * Concurrency keys of runs. A ready run occupies its key until the run ends. All methods must run inside `db.write`.
 */
export interface ConcurrencyKeys {
  /** Acquires the key. If the key is occupied by `limit` runs, applies the given strategy. */
  acquire(key: string | null, limit: number, strategy: ConcurrencyStrategy | undefined): KeyAcquisition;
  /** Makes queued runs with the key ready while the key has room, except paused ones. Returns these runs. */
  promote(key: string | null): RunRecord[];
}

export function concurrencyKeys(db: Database, rows: WorkflowRows): ConcurrencyKeys {
  const ofKey = `concurrency_key = :key and concurrency_key is not null and ${LIVE}`;
  const holds = `(status <> 'queued' or ready = 1)`;
  const held = db
    .prepare<[{ key: string }], number>(`select count(*) from run where ${ofKey} and ${holds}`)
    .pluck();
  const supersede = (which: string) =>
    db
      .prepare<[{ key: string }], string>(
        `update run set gives_way = 1 where ${ofKey} and ${which} returning id`,
      )
      .pluck();
  const supersedeWaiting = supersede(WAITS_FOR_KEY);
  const supersedeHolding = supersede(holds);
  const first = db.prepare<[{ key: string }], RunRow>(`
    select ${RUN_COLUMNS} from run where ${ofKey} and ${WAITS_FOR_KEY} and gives_way = 0 order by rank desc, seq limit 1`);
  const makeReady = db.prepare<[{ seq: number }]>(
    `update run set ready = 1, reason = 'capacity' where seq = :seq`,
  );

  const hasRoom = (key: string, limit: number): boolean => held.get({ key })! < limit;

  function superseded(key: string, strategy: ConcurrencyStrategy | undefined): string[] {
    if (strategy !== 'replace-queued' && strategy !== 'cancel-running') return [];
    const waiting = supersedeWaiting.all({ key });
    return strategy === 'cancel-running' ? waiting.concat(supersedeHolding.all({ key })) : waiting;
  }

  return {
    acquire(key, limit, strategy) {
      if (key === null || hasRoom(key, limit)) return HAS_ROOM;
      return { hasRoom: false, rejected: strategy === 'reject', supersedes: superseded(key, strategy) };
    },
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

const HAS_ROOM: KeyAcquisition = { hasRoom: true, rejected: false, supersedes: [] };
