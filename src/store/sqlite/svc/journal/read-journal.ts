import { begunAt, type Frame, findNewerFrame, frameAt, HEAD_BYTES, isEndOf, saltOf } from './frame.ts';
import { FRAMES_AT, hasDamagedHeaderCopy, readHeader } from './header.ts';

export interface JournalContent {
  /** Id of the owning database. Null for files that were written with schema 6 of `svc.db`, which had no ids. */
  database: Buffer | null;
  /** Frames of the latest use of the file, in order. Gaps between their sequences mean that frames are missing. */
  frames: Frame[];
  /** True when the data before the first frame is unreadable, so that frames may be lost. */
  isStartLost: boolean;
  /** Highest sequence that was certainly written, even if the last frames are unreadable. 0 when none is known. */
  writtenUntil: number;
  hasDamagedHeader: boolean;
}

/**
 * Reads a journal file and skips unreadable frames. Files are reused from the start, so newer frames precede older
 * ones. Returns undefined if the file is not recognised as a journal file.
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
    // An incomplete frame is the interrupted last write, which was never acknowledged, unless newer frames follow it.
    const begun = begunAt(file, at, salt);
    const before = last ?? (begun ?? 1) - 1;
    const { frame, marked } = findNewerFrame(file, at, before, salt);
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

/** Reads files of the former format, which had no header and no end mark. Each use of a file had its own salt. */
function readFirstFormat(file: Buffer): JournalContent | undefined {
  const salt = saltOf(file);
  const frames: Frame[] = [];
  // A power cut can leave blocks of zeros.
  const isBlank = salt.every((byte) => byte === 0);
  const next = (at: number) => frameAt(file, at, salt) ?? findNewerFrame(file, at, 0, salt).frame;
  for (let frame = isBlank ? undefined : next(0); frame; frame = next(frame.end)) frames.push(frame);
  const isJournal =
    file.length === 0 || frames.length > 0 || (!isBlank && begunAt(file, 0, salt) !== undefined);
  return isJournal
    ? { database: null, frames, isStartLost: false, writtenUntil: 0, hasDamagedHeader: false }
    : undefined;
}
