import { begunAt, type Frame, findNewerFrame, frameAt, HEAD_BYTES, isEndOf, saltOf } from './frame.ts';
import { FRAMES_AT, hasDamagedHeaderCopy, readHeader } from './header.ts';

export interface JournalContent {
  /**
   * Id of the database to which the file belongs. Null for files of schema 6 of `svc.db`, which had no database ids.
   */
  database: Buffer | null;
  /**
   * Frames since the file was last overwritten, in order. A gap in their sequence numbers means that frames are
   * missing.
   */
  frames: Frame[];
  /** Whether the data before the first frame is unreadable. If so, frames might be lost. */
  isStartLost: boolean;
  /**
   * Highest sequence number of the unreadable frames at the end of the file. The value is 0 if there are no such
   * frames, and infinite if the number is unknown.
   */
  writtenUntil: number;
  hasDamagedHeader: boolean;
}

/**
 * Reads a journal file and skips unreadable frames. Returns undefined if the file is not a journal file. Older frames
 * can follow newer frames, because files are overwritten from the start.
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
    // An incomplete frame without newer frames after it is an interrupted last write. That write was never
    // acknowledged.
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

/**
 * Reads files of the former format, which had neither headers nor end marks. The salt changed each time a file was
 * overwritten.
 */
function readFirstFormat(file: Buffer): JournalContent | undefined {
  const salt = saltOf(file);
  const frames: Frame[] = [];
  // A power failure can leave blocks of zeros in the file.
  const isBlank = salt.every((byte) => byte === 0);
  const next = (at: number) => frameAt(file, at, salt) ?? findNewerFrame(file, at, 0, salt).frame;
  for (let frame = isBlank ? undefined : next(0); frame; frame = next(frame.end)) frames.push(frame);
  const isJournal =
    file.length === 0 || frames.length > 0 || (!isBlank && begunAt(file, 0, salt) !== undefined);
  return isJournal
    ? { database: null, frames, isStartLost: false, writtenUntil: 0, hasDamagedHeader: false }
    : undefined;
}
