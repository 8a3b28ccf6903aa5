import { storeError } from '../../store-error.ts';
import { Batches, type Pending } from '../committer/batches.ts';
import { cutUnits } from '../committer/cut-units.ts';
import { pack } from '../committer/pack.ts';
import type { Unit } from '../committer/protocol.ts';
import { endedError } from '../committer/thread.ts';
import type { Checkpointer } from './checkpointer.ts';
import { writeSynced } from './files.ts';
import { maxFrameBytes, writeFrame } from './frame.ts';
import type { Segment, Segments } from './segments.ts';
import type { WriteLoad } from './write-load.ts';

export interface JournalWriterDeps {
  segments: Segments;
  checkpointer: Checkpointer;
  load: WriteLoad;
}

/**
 * Number of writes below which a frame waits for more writes under load. Without this wait, system calls took a sixth
 * of the CPU time.
 */
const SMALL_FRAME = 30;
const BUFFER_BYTES = 1024 * 1024;

export class JournalWriter {
  readonly #segments: Segments;
  readonly #checkpointer: Checkpointer;
  readonly #load: WriteLoad;
  readonly #sharedBuffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
  readonly #batches: Batches<Unit, number>;
  /** Sequence number of the last written frame. */
  #sequence: number;

  constructor({ segments, checkpointer, load }: JournalWriterDeps) {
    this.#segments = segments;
    this.#checkpointer = checkpointer;
    this.#load = load;
    this.#sequence = checkpointer.added;
    this.#batches = new Batches({
      write: (batch) => this.#write(batch),
      cut: cutUnits,
      small: SMALL_FRAME,
      closedError: () => endedError(segments.folder),
    });
  }

  /**
   * Appends a write. Resolves with the sequence number of its frame once the frame is on disk. Rejects with STORE_ERROR
   * if the journal cannot be written.
   */
  append(unit: Unit): Promise<number> {
    this.#load.begin();
    return this.#batches.add(unit);
  }

  close(): Promise<void> {
    return this.#batches.close();
  }

  async #write(batch: readonly Pending<Unit, number>[]): Promise<void> {
    try {
      const written = await this.#writeFrame(batch.map(({ item }) => item));
      for (const { resolve } of batch) resolve(written);
    } catch (error) {
      // A partly written frame needs no cleanup, because the next frame overwrites it.
      throw storeError(this.#segments.folder, error);
    } finally {
      this.#load.end(batch.length);
    }
  }

  async #writeFrame(units: readonly Unit[]): Promise<number> {
    const segment = await this.#writableSegment();
    const packed = pack(units);
    const maxBytes = maxFrameBytes(packed);
    const target =
      maxBytes <= this.#sharedBuffer.length ? this.#sharedBuffer : Buffer.allocUnsafeSlow(maxBytes);
    const { end, written } = writeFrame(target, packed, this.#sequence + 1, segment.salt);
    await writeSynced(segment.fd, target.subarray(0, written), segment.size);
    this.#sequence++;
    const from = segment.size;
    segment.size += end;
    segment.sequence = this.#sequence;
    const { file, fd, size: to, sequence } = segment;
    this.#checkpointer.add({ file, fd, from, to, sequence });
    return sequence;
  }

  async #writableSegment(): Promise<Segment> {
    for (;;) {
      const { applied } = this.#checkpointer;
      const segment = await this.#segments.writable(applied);
      if (segment) return segment;
      await this.#checkpointer.progress(applied);
    }
  }
}
