import type Sqlite from 'better-sqlite3';
import type { Frame } from '../journal/frame.ts';
import { DATABASE_ID_BYTES } from '../journal/header.ts';
import { recoverJournal } from '../journal/recover.ts';
import type { PackedUnit, Recovered } from './protocol.ts';

interface Applied {
  units: number;
  /** Whether a frame is missing from the sequence. Frames after the gap are not applied. */
  hasHole: boolean;
}

/**
 * Maximum number of writes per transaction. Other processes wait about ten milliseconds for a transaction of this size.
 */
const MAX_BATCH = 512;

/** Applies journal frames to the database in order. Each frame is applied exactly once, even after a crash. */
export function createApplier(
  sqlite: Sqlite.Database,
  runBatch: (batch: Array<{ work: () => unknown }>) => unknown,
  run: (unit: PackedUnit, bytes: Uint8Array) => unknown,
) {
  const read = sqlite.prepare<[], { applied: number; id: Buffer | null }>(
    'select applied, id from delivery_journal',
  );
  const note = sqlite.prepare<[number]>('update delivery_journal set applied = ?');
  const renew = sqlite.prepare(`update delivery_journal set id = randomblob(${DATABASE_ID_BYTES})`);
  let { applied } = read.get()!;

  function commit(work: Array<() => unknown>, sequence: number): void {
    // The applied sequence number is written in the same transaction, so that no frame is applied twice.
    runBatch([...work, () => note.run(sequence)].map((each) => ({ work: each })));
    applied = sequence;
  }

  /**
   * Applies frames until a frame is out of sequence. Throws SQLite errors. Batches that were committed before the error
   * stay committed.
   */
  function apply(frames: Iterable<Frame>): Applied {
    let work: Array<() => unknown> = [];
    let reached = applied;
    let units = 0;
    let hasHole = false;
    for (const frame of frames) {
      if (frame.sequence <= reached) continue;
      hasHole = frame.sequence !== reached + 1;
      if (hasHole) break;
      for (const unit of JSON.parse(frame.units.toString()) as PackedUnit[])
        work.push(() => run(unit, frame.bytes));
      reached = frame.sequence;
      if (work.length < MAX_BATCH) continue;
      commit(work, reached);
      units += work.length;
      work = [];
    }
    if (work.length > 0) commit(work, reached);
    return { units: units + work.length, hasHole };
  }

  return {
    get applied() {
      return applied;
    },
    apply,

    /** Applies the frames that an earlier process has acknowledged but not applied. */
    recover: (folder: string): Recovered =>
      recoverJournal(folder, {
        id: read.get()!.id,
        get applied() {
          return applied;
        },
        apply,
        renew: () => void runBatch([{ work: () => renew.run() }]),
      }),
  };
}
