import { Duplex } from 'node:stream';

/** Bytes of one call. A frame of the runner has room for more, but other calls must not wait for it. */
const MAX_CHUNK_BYTES = 256 * 1024;

type Platform = (method: string, ...args: unknown[]) => Promise<unknown>;

/** A connection that the platform has opened for a call of this process. */
export class TunnelSocket extends Duplex {
  readonly #id: number;
  readonly #platform: Platform;
  #isReading = false;

  constructor(id: number, platform: Platform) {
    super();
    this.#id = id;
    this.#platform = platform;
  }

  override _read(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#platform('read', this.#id).then(
      (data) => {
        this.#isReading = false;
        this.push(typeof data === 'string' ? Buffer.from(data, 'base64') : null);
      },
      (error: Error) => this.destroy(error),
    );
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#write(chunk).then(() => done(), done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#platform('end', this.#id).then(() => done(), done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#platform('close', this.#id).catch(() => {});
    done(error);
  }

  async #write(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length; at += MAX_CHUNK_BYTES)
      await this.#platform('write', this.#id, chunk.subarray(at, at + MAX_CHUNK_BYTES).toString('base64'));
  }
}
