import { begunAt, type Frame, frameAt, HEAD_BYTES, isEndOf, newerBehind, saltOf } from './frame.ts';
import { FRAMES_AT, isHeaderWorn, readHeader } from './header.ts';

/** What a file of the journal holds, as far as it can be read. */
export interface Reading {
  /** Whose it is; null for what schema 6 of svc.db wrote, when files did not say it. */
  database: Buffer | null;
  /** Those of its last turn, in order; where one is missing, the sequence of those behind it tells. */
  frames: Frame[];
  /** Before its first frame something was written, of which nobody can say whether it was of this turn. */
  isStartLost: boolean;
  /** Up to this sequence frames were written, though those behind the last one cannot be read; 0 when none is known of. */
  writtenUntil: number;
  /** A disk has changed one of its header's copies. */
  isWorn: boolean;
}

/**
 * A file is written over and over, from its start: one turn goes as far as its frames follow on each other, and behind them
 * lies what is left of earlier ones, whose sequences are lower. A frame that cannot be read is passed over.
 * Undefined for what is no file of a journal, or can be recognised as one no more.
 */
export function readJournal(file: Buffer): Reading | undefined {
  const header = readHeader(file);
  if (!header) return readFormer(file);
  const { salt } = header;
  const frames: Frame[] = [];
  let isStartLost = false;
  let writtenUntil = 0;
  for (let at = FRAMES_AT; ; at = frames.at(-1)!.end) {
    const last = frames.at(-1)?.sequence;
    const whole = frameAt(file, at, salt);
    if (whole && whole.sequence > (last ?? 0)) {
      frames.push(whole);
      continue;
    }
    if (file.length < at + HEAD_BYTES || (last !== undefined && isEndOf(last, file, at, salt))) break;
    // What a process leaves that dies while it writes: its end never came to the disk, and nobody was told that it is there.
    const begun = begunAt(file, at, salt);
    const before = last ?? (begun ?? 1) - 1;
    const { frame, marked } = newerBehind(file, at, before, salt);
    const isUnknown = begun === undefined;
    isStartLost ||= isUnknown && last === undefined;
    if (!frame) {
      if (marked > before) writtenUntil = marked;
      else if (isUnknown) writtenUntil = Number.POSITIVE_INFINITY;
      break;
    }
    frames.push(frame);
  }
  return { database: header.database, frames, isStartLost, writtenUntil, isWorn: isHeaderWorn(file) };
}

/** Without a header: frames from the first byte on, each turn with a salt of its own, and no mark behind the last. */
function readFormer(file: Buffer): Reading | undefined {
  const salt = saltOf(file);
  const frames: Frame[] = [];
  // Blocks that a power cut left without content; too short a file has none at all.
  const isBlank = salt.every((byte) => byte === 0);
  const next = (at: number) => frameAt(file, at, salt) ?? newerBehind(file, at, 0, salt).frame;
  for (let frame = isBlank ? undefined : next(0); frame; frame = next(frame.end)) frames.push(frame);
  const isJournal =
    file.length === 0 || frames.length > 0 || (!isBlank && begunAt(file, 0, salt) !== undefined);
  return isJournal
    ? { database: null, frames, isStartLost: false, writtenUntil: 0, isWorn: false }
    : undefined;
}
