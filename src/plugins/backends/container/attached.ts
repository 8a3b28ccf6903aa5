import { Duplex, PassThrough } from 'node:stream';

/** Kind, three zero bytes, length. @spec Docker Engine API: Stream format */
const HEADER_BYTES = 8;
const STDOUT = 1;

export interface AttachedStreams {
  /** stdin and stdout: the frame channel. */
  channel: Duplex;
  stderr: PassThrough;
}

/** Demultiplexes a container's stdout and stderr; propagates backpressure both ways. */
export function splitStreams(socket: Duplex): AttachedStreams {
  const stderr = new PassThrough();
  const header = Buffer.alloc(HEADER_BYTES);
  let have = 0;
  let left = 0;
  let channelHasRoom = true;
  let stderrHasRoom = true;
  const channel = new Duplex({
    read() {
      channelHasRoom = true;
      flow();
    },
    write: (chunk, _encoding, done) => void socket.write(chunk, done),
    final: (done) => void socket.end(done),
    destroy: (error, done) => {
      socket.destroy();
      done(error);
    },
  });

  /** Reads only while both streams have room: the next bytes may belong to either. */
  function flow(): void {
    if (channelHasRoom && stderrHasRoom) socket.resume();
    else socket.pause();
  }

  function take(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      if (left === 0) {
        const step = Math.min(HEADER_BYTES - have, chunk.length - at);
        chunk.copy(header, have, at, at + step);
        have += step;
        at += step;
        if (have < HEADER_BYTES) break;
        have = 0;
        left = header.readUInt32BE(4);
        continue;
      }
      const piece = chunk.subarray(at, at + left);
      at += piece.length;
      left -= piece.length;
      if (header[0] === STDOUT) channelHasRoom = channel.push(piece);
      else stderrHasRoom = stderr.write(piece);
    }
    flow();
  }

  socket.on('data', take);
  stderr.on('drain', () => {
    stderrHasRoom = true;
    flow();
  });
  const end = (): void => {
    channel.push(null);
    stderr.end();
  };
  socket.on('end', end);
  socket.on('close', end);
  socket.on('error', () => {});
  return { channel, stderr };
}
