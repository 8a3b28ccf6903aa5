import { fdatasync, write } from 'node:fs';
import { promisify } from 'node:util';
import { pack } from '../committer/pack.ts';
import type { Unit } from '../committer/protocol.ts';
import { endedError } from '../committer/thread.ts';
import { storeError } from '../store-error.ts';
import { roomFor, writeFrame } from './frame.ts';
import type { Segment, Segments } from './segments.ts';

/** A frame that is on disk and not in the database yet. */
export interface Written {
  file: string;
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

interface Queued {
  unit: Unit;
  resolve(sequence: number): void;
  reject(error: unknown): void;
}

/** A longer queue is cut, so that the first of it need not wait for the last. */
const MOST_UNITS = 512;
const MOST_BYTES = 4 * 1024 * 1024;
/**
 * A frame of fewer waits a millisecond for more where there is company. The disk takes a frame in a fifth of a
 * millisecond; without the wait there were three units in each, and the system calls around them cost a sixth of all.
 */
const SMALL_FRAME = 30;
const GATHER_MS = 1;
/** Company: so many units in the last frame and the one that gathers. */
const COMPANY = 4;
const BUFFER_BYTES = 1024 * 1024;

const [writeTo, sync] = [promisify(write), promisify(fdatasync)];

/** Brings units to the disk, frame by frame. One is being written while the next gathers. */
export function createJournalWriter(deps: JournalWriterDeps): JournalWriter {
  const { segments } = deps;
  const { folder } = segments;
  const usual = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  let { sequence } = deps;
  let queue: Queued[] = [];
  let underWay = false;
  let closed = false;
  let whenIdle: Array<() => void> = [];
  let gathering: NodeJS.Timeout | undefined;

  function next(): void {
    clearTimeout(gathering);
    gathering = undefined;
    if (underWay) return;
    if (queue.length === 0) {
      for (const tell of whenIdle) tell();
      whenIdle = [];
      return;
    }
    underWay = true;
    void writeDown(cut());
  }

  function cut(): Queued[] {
    let bytes = 0;
    let count = 0;
    while (count < queue.length && count < MOST_UNITS && bytes < MOST_BYTES)
      bytes += bytesOf(queue[count++]!.unit);
    const batch = queue.slice(0, count);
    queue = queue.slice(count);
    return batch;
  }

  async function writeDown(batch: Queued[]): Promise<void> {
    try {
      const written = await append(batch);
      for (const { resolve } of batch) resolve(written);
    } catch (error) {
      // What the disk has of it lies behind the last frame: the next one is written over it.
      for (const { reject } of batch) reject(storeError(folder, error));
    }
    underWay = false;
    const isWorthwhile =
      queue.length > 0 && queue.length < SMALL_FRAME && batch.length + queue.length >= COMPANY;
    if (isWorthwhile) gathering = setTimeout(next, GATHER_MS);
    else next();
  }

  async function append(batch: Queued[]): Promise<number> {
    const segment = await room();
    const packed = pack(batch.map(({ unit }) => unit));
    const most = roomFor(packed);
    const target = most <= usual.length ? usual : Buffer.allocUnsafeSlow(most);
    const length = writeFrame(target, packed, sequence + 1, segment.salt);
    await toDisk(segment, target.subarray(0, length));
    sequence++;
    const from = segment.size;
    segment.size += length;
    segment.sequence = sequence;
    deps.written({ file: segment.file, from, to: segment.size, sequence }, batch.length);
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

  return {
    append: (unit) =>
      new Promise((resolve, reject) => {
        if (closed) {
          reject(endedError(folder));
          return;
        }
        queue.push({ unit, resolve, reject });
        // The rest of this turn's units come along.
        if (!underWay && queue.length === (gathering ? SMALL_FRAME : 1)) setImmediate(next);
      }),
    async close() {
      closed = true;
      if (underWay || queue.length > 0) await new Promise<void>((resolve) => whenIdle.push(resolve));
    },
  };
}

async function toDisk({ fd, size }: Segment, frame: Buffer): Promise<void> {
  for (let at = 0; at < frame.length; ) {
    const { bytesWritten } = await writeTo(fd, frame, at, frame.length - at, size + at);
    at += bytesWritten;
  }
  await sync(fd);
}

function bytesOf({ steps }: Unit): number {
  let bytes = 0;
  for (const [, values] of steps)
    for (const value of values) if (value instanceof Uint8Array) bytes += value.byteLength;
  return bytes;
}
