import { createBatches } from '../committer/batches.ts';
import { pack } from '../committer/pack.ts';
import type { Unit } from '../committer/protocol.ts';
import { endedError } from '../committer/thread.ts';
import { storeError } from '../store-error.ts';
import { writeSynced } from './files.ts';
import { roomFor, writeFrame } from './frame.ts';
import type { Segment, Segments } from './segments.ts';

/** A frame that is on disk and not in the database yet. */
export interface Written {
  file: string;
  fd: number;
  from: number;
  to: number;
  sequence: number;
}

export interface JournalWriterDeps {
  segments: Segments;
  /** Of the last frame that was ever written. */
  sequence: number;
  /** Of the last frame that is in the database. */
  applied: () => number;
  /** Settles when more of it is than `applied`. Throws what keeps it from getting there. */
  progress: (applied: number) => Promise<void>;
  written: (frame: Written, units: number) => void;
}

export interface JournalWriter {
  /** Settles with its frame's sequence once `unit` is on disk; units of one moment share a frame. Throws STORE_ERROR. */
  append(unit: Unit): Promise<number>;
  /** Settles when nothing is queued; later units are refused. */
  close(): Promise<void>;
}

const MOST_UNITS = 512;
const MOST_BYTES = 4 * 1024 * 1024;
/**
 * The disk takes a frame in a fifth of a millisecond; without a wait for more there were three units in each, and the system
 * calls around them cost a sixth of all.
 */
const SMALL_FRAME = 30;
const BUFFER_BYTES = 1024 * 1024;

/** Brings units to the disk, frame by frame. */
export function createJournalWriter(deps: JournalWriterDeps): JournalWriter {
  const { segments } = deps;
  const { folder } = segments;
  const usual = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  let { sequence } = deps;
  const batches = createBatches<Unit, number>({
    async write(batch) {
      try {
        const written = await writeDown(batch.map(({ item }) => item));
        for (const { resolve } of batch) resolve(written);
      } catch (error) {
        // What the disk has of it lies behind the last frame: the next one is written over it.
        throw storeError(folder, error);
      }
    },
    cut,
    small: SMALL_FRAME,
    closedError: () => endedError(folder),
  });

  async function writeDown(units: readonly Unit[]): Promise<number> {
    const segment = await room();
    const packed = pack(units);
    const most = roomFor(packed);
    const target = most <= usual.length ? usual : Buffer.allocUnsafeSlow(most);
    const { end, written } = writeFrame(target, packed, sequence + 1, segment.salt);
    await writeSynced(segment.fd, target.subarray(0, written), segment.size);
    sequence++;
    const from = segment.size;
    segment.size += end;
    segment.sequence = sequence;
    const { file, fd, size: to } = segment;
    deps.written({ file, fd, from, to, sequence }, units.length);
    return sequence;
  }

  async function room(): Promise<Segment> {
    for (;;) {
      const applied = deps.applied();
      const segment = await segments.writable(applied);
      if (segment) return segment;
      await deps.progress(applied);
    }
  }

  return { append: batches.add, close: batches.close };
}

function cut(queue: readonly { item: Unit }[]): number {
  let bytes = 0;
  let count = 0;
  while (count < queue.length && count < MOST_UNITS && bytes < MOST_BYTES)
    bytes += bytesOf(queue[count++]!.item);
  return count;
}

function bytesOf({ steps }: Unit): number {
  let bytes = 0;
  for (const [, values] of steps)
    for (const value of values) if (value instanceof Uint8Array) bytes += value.byteLength;
  return bytes;
}
