import type { Socket } from 'node:net';
import { atTurnEnd } from '../../kit/turn-end.ts';
import { answerHead } from './answer.ts';
import { type PlainHead, readPlainHead } from './request.ts';

/** A POST that arrived whole. */
export interface PlainRequest extends Pick<PlainHead, 'url' | 'rawHeaders'> {
  body: Buffer;
}

/** Where the answer to a request goes. */
export interface PlainExchange {
  /** The client's address; empty once it is gone. */
  readonly source: string;
  /**
   * Headers as flat pairs, without length, date and connection. Throws when one cannot be sent. `written` is called once
   * the answer was written to the socket, or the socket is gone.
   */
  respond(status: number, headers: readonly string[], text: string, written?: () => void): void;
  destroy(): void;
}

/** Takes a request and answers it, now or later, or says that it did not. */
export type TakePlain = (request: PlainRequest, exchange: PlainExchange) => boolean;

export interface PlainConnection {
  /** Gives it to node:http where its client is slow, and ends it where it was idle for too long. */
  look(now: number): void;
  /** Ends it unless a request is on its way. */
  endIdle(): void;
  destroy(): void;
}

export interface PlainConnectionOptions {
  /** Paths of other requests are node:http's as soon as their head has come: some are answered before their body. */
  prefix: string;
  take: TakePlain;
  /** Has node:http serve the socket from here on. */
  serveOtherwise: (socket: Socket) => void;
  /** The connection is no longer ours. */
  onGone: (connection: PlainConnection) => void;
  isDraining: () => boolean;
  keepAliveMs: number;
}

const soon = atTurnEnd((send: () => void) => send());

/** Who takes longer to send a request is node:http's, which has the timeouts for that. */
const SLOW_MS = 1000;
/** In more pieces than this it does not arrive here: joining them would cost what it brings. */
const MOST_PIECES = 8;

/**
 * Reads plain requests off a socket, one after the other, and answers them. With the first bytes that are anything else
 * the socket becomes node:http's, with those bytes and for good.
 */
export function openPlainConnection(socket: Socket, options: PlainConnectionOptions): PlainConnection {
  const { prefix, take, serveOtherwise, onGone, isDraining, keepAliveMs } = options;
  /** What has come and is not answered yet: part of a request, or what was sent before the answer to the one before. */
  let held: Buffer | undefined;
  let pieces = 0;
  /** Of the request whose body is on its way. */
  let head: PlainHead | undefined;
  let isAnswering = false;
  let answer: string | Buffer = '';
  let written: () => void = ignore;
  let isLast = false;
  let hasAnswered = false;
  let hasEnded = false;
  /** `performance.now()` since when nothing is on its way, or the request is. */
  let since = performance.now();

  const onData = (chunk: Buffer): void => {
    // Ended by us: nothing that comes now could be answered, so nothing of it may be done.
    if (socket.writableEnded) return;
    if (isAnswering) {
      held = held ? Buffer.concat([held, chunk]) : chunk;
      socket.pause();
      return;
    }
    pieces++;
    offer(held ? Buffer.concat([held, chunk]) : chunk);
  };

  function offer(bytes: Buffer): void {
    held = undefined;
    head ??= readPlainHead(bytes);
    if (!head?.url.startsWith(prefix)) leave(bytes);
    else if (bytes.length < head.end) awaitRest(bytes);
    else answerTo(bytes, head);
  }

  function awaitRest(bytes: Buffer): void {
    if (hasEnded || pieces >= MOST_PIECES) {
      leave(bytes);
      return;
    }
    if (pieces <= 1) since = performance.now();
    held = bytes;
    readOn();
  }

  function answerTo(bytes: Buffer, { url, rawHeaders, bodyStart, end }: PlainHead): void {
    head = undefined;
    pieces = 0;
    isAnswering = true;
    // Before it is taken: it may be answered at once.
    if (bytes.length > end) held = bytes.subarray(end);
    if (!take({ url, rawHeaders, body: bytes.subarray(bodyStart, end) }, exchange)) leave(bytes);
  }

  /** node:http reads them as if they came just now. */
  function leave(bytes: Buffer | undefined): void {
    release();
    readOn();
    serveOtherwise(socket);
    if (bytes) socket.emit('data', bytes);
    if (hasEnded) socket.emit('end');
  }

  function next(): void {
    isAnswering = false;
    hasAnswered = true;
    since = performance.now();
    // A client that does not read its answers gets no more of them made.
    if (socket.writableNeedDrain) {
      isAnswering = true;
      socket.once('drain', next);
      return;
    }
    if (held) offer(held);
    else if (hasEnded) socket.destroySoon();
    else readOn();
  }

  /** Only once all that came before is used: else what is held would grow by a chunk with each answer. */
  function readOn(): void {
    if (socket.isPaused()) socket.resume();
  }

  function send(): void {
    const tellWritten = written;
    written = ignore;
    if (!socket.destroyed) socket.write(answer, 'latin1');
    tellWritten();
    if (socket.destroyed) return;
    if (isLast) socket.destroySoon();
    else next();
  }

  const exchange: PlainExchange = {
    get source() {
      return socket.remoteAddress ?? '';
    },
    respond(status, headers, text, onWritten = ignore) {
      written = onWritten;
      isLast = isDraining() || (hasEnded && !held);
      const bytes = Buffer.byteLength(text);
      const head = answerHead(status, headers, bytes, isLast);
      // Text that is ASCII leaves with the head in one write, and is not copied.
      answer =
        bytes === text.length ? head + text : Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(text)]);
      soon(send);
    },
    destroy: () => socket.destroy(),
  };

  const onEnd = (): void => {
    hasEnded = true;
    if (isAnswering) return;
    if (held) leave(held);
    else socket.destroySoon();
  };
  const onClose = (): void => onGone(connection);
  function release(): void {
    socket.off('data', onData).off('end', onEnd).off('close', onClose).off('error', ignore);
    onGone(connection);
  }

  const connection: PlainConnection = {
    look(now) {
      if (isAnswering) return;
      if (held || !hasAnswered) {
        if (now - since >= SLOW_MS) leave(held);
      } else if (now - since >= keepAliveMs) socket.destroySoon();
    },
    endIdle() {
      if (!isAnswering && !held) socket.destroySoon();
    },
    destroy: () => socket.destroy(),
  };
  socket.on('data', onData).on('end', onEnd).on('close', onClose).on('error', ignore);
  return connection;
}

/** It closes after that, which is all there is to do about it. */
function ignore(): void {}
