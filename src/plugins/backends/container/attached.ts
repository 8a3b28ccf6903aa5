import { Duplex, PassThrough } from 'node:stream';

/**
 * Size of a frame header, which contains the stream number, three zero bytes and the data length. @spec Docker Engine
 * API: Stream format
 */
const HEADER_BYTES = 8;
const STDOUT = 1;

export interface AttachedStreams {
  /** Combined stdin and stdout of the container, which carry the messages of the runner protocol. */
  channel: Duplex;
  stderr: PassThrough;
}

/** Splits the combined output of a container into stdout and stderr, and propagates backpressure. */
export function splitStreams(socket: Duplex): AttachedStreams {
  const stderr = new PassThrough();
  const channel = new Channel(socket, stderr);
  socket.on('data', (chunk: Buffer) => channel.receive(chunk));
  stderr.on('drain', () => channel.resumeAfterStderr());
  const end = (): void => {
    channel.push(null);
    stderr.end();
  };
  socket.on('end', end);
  socket.on('close', end);
  socket.on('error', () => {});
  return { channel, stderr };
}

/** Reads the stdout of the container, writes its stdin, and forwards its stderr to another stream. */
class Channel extends Duplex {
  readonly #socket: Duplex;
  readonly #stderr: PassThrough;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #payloadLeft = 0;
  #channelHasRoom = true;
  #stderrHasRoom = true;

  constructor(socket: Duplex, stderr: PassThrough) {
    super();
    this.#socket = socket;
    this.#stderr = stderr;
  }

  override _read(): void {
    this.#channelHasRoom = true;
    this.#flow();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }

  resumeAfterStderr(): void {
    this.#stderrHasRoom = true;
    this.#flow();
  }

  receive(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      if (this.#payloadLeft === 0) {
        at += this.#readHeader(chunk, at);
        continue;
      }
      const piece = chunk.subarray(at, at + this.#payloadLeft);
      at += piece.length;
      this.#payloadLeft -= piece.length;
      if (this.#header[0] === STDOUT) this.#channelHasRoom = this.push(piece);
      else this.#stderrHasRoom = this.#stderr.write(piece);
    }
    this.#flow();
  }

  /** Reads the next bytes of a header and returns the number of bytes read. */
  #readHeader(chunk: Buffer, at: number): number {
    const step = Math.min(HEADER_BYTES - this.#headerBytes, chunk.length - at);
    chunk.copy(this.#header, this.#headerBytes, at, at + step);
    this.#headerBytes += step;
    if (this.#headerBytes === HEADER_BYTES) {
      this.#headerBytes = 0;
      this.#payloadLeft = this.#header.readUInt32BE(4);
    }
    return step;
  }

  /** Reads from the socket only while stdout and stderr both have room. The next bytes can belong to either stream. */
  #flow(): void {
    if (this.#channelHasRoom && this.#stderrHasRoom) this.#socket.resume();
    else this.#socket.pause();
  }
}
