import { begunAt, type Frame, frameAt, HEAD_BYTES, isEndOf, newerBehind, saltOf } from './frame.ts';
import { FRAMES_AT, hasDamagedHeaderCopy, readHeader } from './header.ts';

/** Readable content of a journal file. */
export interface JournalContent {
  /** Id of the owning database; null for files of schema 6 of svc.db, which have no id. */
  database: Buffer | null;
  /** Frames of the file's latest use, in order. Missing frames show as gaps between the sequences. */
  frames: Frame[];
  /** True when unreadable data, which may belong to the file's latest use, precedes the first frame. */
  isStartLost: boolean;
  /** Highest sequence known to have been written, even if the last frames are unreadable; 0 when none is known. */
  writtenUntil: number;
  /** True when one of the header copies is damaged. */
  hasDamagedHeader: boolean;
}

/**
 * Files are reused from the start: frames of the latest use come first, then older ones with lower sequences.
 * Unreadable frames are skipped. Undefined for a file that is not recognisable as a journal file.
 */
export function readJournal(file: Buffer): JournalContent | undefined {
  const header = readHeader(file);
  if (!header) return readFirstFormat(file);
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
    // The last write was interrupted: its end never reached the disk, so it was never acknowledged.
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
  return {
    database: header.database,
    frames,
    isStartLost,
    writtenUntil,
    hasDamagedHeader: hasDamagedHeaderCopy(file),
  };
}

/** Reads the former format, which has no header and no end mark, frames from the first byte on, and a salt per use. */
function readFirstFormat(file: Buffer): JournalContent | undefined {
  const salt = saltOf(file);
  const frames: Frame[] = [];
  // A power cut can leave zeroed blocks.
  const isBlank = salt.every((byte) => byte === 0);
  const next = (at: number) => frameAt(file, at, salt) ?? newerBehind(file, at, 0, salt).frame;
  for (let frame = isBlank ? undefined : next(0); frame; frame = next(frame.end)) frames.push(frame);
  const isJournal =
    file.length === 0 || frames.length > 0 || (!isBlank && begunAt(file, 0, salt) !== undefined);
  return isJournal
    ? { database: null, frames, isStartLost: false, writtenUntil: 0, hasDamagedHeader: false }
    : undefined;
}
