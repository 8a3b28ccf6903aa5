import type Sqlite from 'better-sqlite3';
import { transactions } from '../group-commit.ts';
import { journalFiles, readWhole } from '../journal/files.ts';
import { type Frame, readFrames } from '../journal/frame.ts';
import type { PackedUnit, Recovered } from './protocol.ts';

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

  /** Throws what SQLite says; what was committed by then stays. Returns how many units it applied. */
  function apply(frames: Iterable<Frame>): number {
    let work: Array<() => unknown> = [];
    let reached = applied;
    let count = 0;
    for (const { sequence, units, bytes } of frames) {
      if (sequence <= reached) continue;
      if (sequence !== reached + 1) break;
      for (const unit of JSON.parse(units) as PackedUnit[]) work.push(() => run(unit, bytes));
      reached = sequence;
      if (work.length < LARGEST_BATCH) continue;
      commit(work, reached);
      count += work.length;
      work = [];
    }
    if (work.length > 0) commit(work, reached);
    return count + work.length;
  }

  return {
    get applied() {
      return applied;
    },
    apply,

    /** What an earlier process acknowledged and did not come to apply. */
    recover(folder: string): Recovered {
      const files = journalFiles(folder)
        .map((file) => ({ file, first: readFrames(readWhole(file)).next().value?.sequence }))
        .filter((each): each is { file: string; first: number } => each.first !== undefined)
        .sort((a, b) => a.first - b.first);
      let units = 0;
      for (const { file } of files) units += apply(readFrames(readWhole(file)));
      // The last write may be cut off; what came behind it in another file proves that this was none.
      return { units, applied, isDamaged: files.some(({ first }) => first > applied) };
    },
  };
}
