import type Sqlite from 'better-sqlite3';
import { transactions } from '../group-commit.ts';
import { journalInOrder, readWhole } from '../journal/files.ts';
import { type Frame, readFrames } from '../journal/frame.ts';
import type { PackedUnit, Recovered } from './protocol.ts';

interface Applied {
  units: number;
  /** There are frames that do not follow on what is applied: one before them is missing. */
  hasHole: boolean;
}

/** Units of a transaction: others wait for the lock meanwhile, some ten milliseconds. */
const LARGEST_BATCH = 512;

/** Moves frames of the journal into the database: each once, in order, however often a process dies in between. */
export function createApplier(
  sqlite: Sqlite.Database,
  run: (unit: PackedUnit, bytes: Uint8Array) => unknown,
) {
  const { together } = transactions(sqlite);
  const read = sqlite.prepare<[], { applied: number }>('select applied from delivery_journal');
  const note = sqlite.prepare<[number]>('update delivery_journal set applied = ?');
  let applied = read.get()!.applied;

  function commit(work: Array<() => unknown>, sequence: number): void {
    // How far it got is part of the same transaction.
    together([...work, () => note.run(sequence)].map((each) => ({ work: each })));
    applied = sequence;
  }

  /** Up to the first frame that does not follow. Throws what SQLite says; what was committed by then stays. */
  function apply(frames: Iterable<Frame>): Applied {
    let work: Array<() => unknown> = [];
    let reached = applied;
    let units = 0;
    let hasHole = false;
    for (const frame of frames) {
      if (frame.sequence <= reached) continue;
      hasHole = frame.sequence !== reached + 1;
      if (hasHole) break;
      for (const unit of JSON.parse(frame.units) as PackedUnit[]) work.push(() => run(unit, frame.bytes));
      reached = frame.sequence;
      if (work.length < LARGEST_BATCH) continue;
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

    /** What an earlier process acknowledged and did not come to apply. */
    recover(folder: string): Recovered {
      const parts = journalInOrder(folder).map((file) => apply(readFrames(readWhole(file))));
      return {
        units: parts.reduce((sum, { units }) => sum + units, 0),
        // The last write may be cut off; what came behind it proves that this was none.
        isDamaged: parts.some(({ hasHole }) => hasHole),
      };
    },
  };
}
