import type { RunRecord, RunWrite, WriteResult } from '../../ports/index.ts';
import { BatchWriter } from '../batch-writer.ts';
import type { PostgresDatabase } from '../database.ts';
import { jsonArray, type PartRows, partRows, rowJson } from './part-rows.ts';
import { runsBySeq } from './run-rows.ts';

const MAX_ITEMS = 64;
const MAX_BYTES = 4 * 1024 * 1024;
/** Batches on several connections overlap, so that one is executed while another waits for the disk. */
const MAX_RUNNING = 3;

const WRITE = `select to_json(applied) as applied, to_json(promoted) as promoted
  from svc.write_runs(:writes, :jobs, :steps, :attempts, :events, :logs, :taken)`;

/** Changes of a run as the JSON rows of `svc.write_runs`. */
interface WriteRows extends PartRows {
  seq: number;
  write: string;
  taken: string[];
  bytes: number;
}

/** Writes the changes of concurrent runs in shared transactions. */
export class RunWriteBatches {
  readonly #database: PostgresDatabase;
  readonly #writer: BatchWriter<WriteRows, WriteResult>;

  constructor(database: PostgresDatabase) {
    this.#database = database;
    this.#writer = new BatchWriter({
      write: (batch) => this.#write(batch),
      sizeOf: ({ bytes }) => bytes,
      ...{ maxRunning: MAX_RUNNING, maxItems: MAX_ITEMS, maxBytes: MAX_BYTES },
    });
  }

  /**
   * Writes the changes of a run. Changes nothing if the run's fence or status differs from `expect`, or if the process
   * that claims the run is dead. The changes are durable when the promise resolves.
   */
  add(write: RunWrite): Promise<WriteResult> {
    return this.#writer.add(rowsOf(write));
  }

  async #write(batch: readonly WriteRows[]): Promise<WriteResult[]> {
    const results = new Map<WriteRows, WriteResult>();
    // A statement can change a run only once.
    for (let left = batch; left.length > 0; left = left.filter((rows) => !results.has(rows))) {
      const bySeq = new Map(left.toReversed().map((rows) => [rows.seq, rows]));
      for (const [rows, result] of await this.#writeOnce([...bySeq.values()])) results.set(rows, result);
    }
    return batch.map((rows) => results.get(rows)!);
  }

  async #writeOnce(batch: readonly WriteRows[]): Promise<Array<[WriteRows, WriteResult]>> {
    const all = (part: keyof PartRows | 'taken'): string => jsonArray(batch.flatMap((rows) => rows[part]));
    const values = {
      writes: jsonArray(batch.map(({ write }) => write)),
      ...{ jobs: all('jobs'), steps: all('steps'), attempts: all('attempts') },
      ...{ events: all('events'), logs: all('logs'), taken: all('taken') },
    };
    const [row] = await this.#database.write((sql) =>
      sql<{ applied: number[]; promoted: number[] }>(WRITE, values, 'write runs'),
    );
    const applied = new Set(row!.applied);
    let promoted = await this.#read(row!.promoted);
    return batch.map((each) => {
      if (!applied.has(each.seq)) return [each, { applied: false, promoted: [] }];
      const result = { applied: true, promoted };
      promoted = [];
      return [each, result];
    });
  }

  /** Returns runs that became ready. The writes are already durable, so a failed read must not fail the writes. */
  #read(seqs: readonly number[]): Promise<RunRecord[]> {
    return this.#database.read((sql) => runsBySeq(sql, seqs)).catch(() => []);
  }
}

function rowsOf({ seq, expect, run, taken, inboxSeen, wakeParent, at, ...parts }: RunWrite): WriteRows {
  const write = rowJson({
    seq,
    expected_fence: expect.fence,
    expected_status: expect.status,
    inbox_seen: inboxSeen,
    wake_parent: wakeParent,
    at,
    changed: run !== null,
    ...(run && {
      status: run.status,
      ready: run.ready,
      reason: run.reason,
      rank: run.rank,
      wake_at: run.wakeAt,
      deadline_at: run.deadlineAt,
      fence: run.fence,
      resume_count: run.resumeCount,
      crashes: run.crashes,
      kills: run.kills,
      in_flight: run.inFlight,
      ending: run.ending,
      ending_at: run.endingAt,
      ending_held_at: run.endingHeldAt,
      output: run.output,
      error: run.error,
      started_at: run.startedAt,
      finished_at: run.finishedAt,
    }),
  });
  const rows = {
    ...partRows(seq, parts),
    taken: taken.map(({ n, by }) => rowJson({ run_seq: seq, n, taken_by: by })),
  };
  const bytes = [[write], ...Object.values(rows)].flat().reduce((total, row) => total + row.length, 0);
  return { ...rows, seq, write, bytes };
}
