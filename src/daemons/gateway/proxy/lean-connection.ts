import { connect } from 'node:net';
import { atTurnEnd } from '../../../kit/turn-end.ts';
import { sendBody } from './request-body.ts';
import { createResponseParser, ProtocolError } from './response-parser.ts';
import type { UpstreamHandler, UpstreamRequest } from './upstream-client.ts';

/** One exchange on a connection. */
export interface Exchange {
  request: UpstreamRequest;
  handler: UpstreamHandler;
  /** `performance.now()` by which the head must have come; moves on while the body is being sent. */
  deadline: number;
  /** Whether anything of it has been written. */
  begun: boolean;
  /** Whether the head of the answer has come. */
  answered: boolean;
  /**
   * What carries it, until it ended. A field, not a map of those under way: the table of a map that an entry joins and
   * leaves with each request is outgrown all the time, and each old one keeps what was in it from the young collector.
   * That was an eighth of the gateway's CPU time.
   */
  connection: LeanConnection | undefined;
}

export interface ConnectionEvents {
  /** The exchange ended well and the connection can take another. */
  onIdle(connection: LeanConnection): void;
  /** The connection is gone; with the exchange that it took along and why. */
  onLost(connection: LeanConnection, exchange: Exchange | undefined, error: Error): void;
}

export interface LeanConnection {
  /** Whether it has carried an exchange before: only then can it be one that the other side is just closing. */
  readonly used: boolean;
  /** What it carries now. */
  readonly exchange: Exchange | undefined;
  /** `performance.now()` since when it is idle. */
  idleSince: number;
  send(exchange: Exchange): void;
  pause(): void;
  resume(): void;
  destroy(): void;
}

export interface ConnectionOptions {
  host: string;
  port: number;
  events: ConnectionEvents;
}

const soon = atTurnEnd((transmit: () => void) => transmit());

/** One kept-alive socket to an upstream. Its listeners are set once and serve every exchange: setting them anew for each costs more than the request. */
export function openConnection({ host, port, events }: ConnectionOptions): LeanConnection {
  const socket = connect({ host, port, noDelay: true });
  const authority = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  let exchange: Exchange | undefined;
  let used = false;
  let gone = false;
  /** Whether the request has been sent whole. An answer that comes before is passed on, but the connection is spent. */
  let sent = true;

  const parser = createResponseParser({
    onHead(status, headers) {
      exchange!.answered = true;
      exchange!.handler.onHead(status, headers);
    },
    onData(chunk) {
      if (exchange && !exchange.handler.onData(chunk)) socket.pause();
    },
    onEnd(reusable) {
      const ended = exchange!;
      release();
      used = true;
      // A slow client may have had it paused at the very end.
      socket.resume();
      if (reusable && sent) events.onIdle(connection);
      else drop();
      ended.handler.onEnd();
    },
  });

  function release(): void {
    if (exchange) exchange.connection = undefined;
    exchange = undefined;
  }
  function drop(): void {
    gone = true;
    socket.destroy();
    events.onLost(connection, undefined, new Error('closed'));
  }
  function lose(error: Error): void {
    if (gone) return;
    gone = true;
    socket.destroy();
    const lost = exchange;
    release();
    events.onLost(connection, lost, error);
  }

  socket.on('data', (chunk: Buffer) => {
    // An aborted exchange takes its connection along; what was on the way is nobody's.
    if (gone) return;
    try {
      parser.push(chunk);
    } catch (error) {
      lose(error as Error);
    }
  });
  socket.on('end', () => {
    if (gone) return;
    try {
      if (exchange) parser.end();
      else lose(new Error('closed'));
    } catch (error) {
      lose(error as Error);
    }
  });
  socket.on('error', lose);
  socket.on('close', () =>
    lose(new ProtocolError('It closed the connection before its answer was complete.')),
  );

  function transmit(): void {
    // Given up in the meantime, or lost with its connection.
    if (!exchange) return;
    const current = exchange;
    const { request } = current;
    current.begun = true;
    // Not before: bytes that come earlier are no answer.
    parser.expect(request.method);
    const head = headText(request, authority);
    if (!request.body) {
      socket.write(head, 'latin1');
      return;
    }
    sent = false;
    sendBody(socket, head, request.body, request.contentLength, {
      current: () => exchange === current,
      onProgress: () => {
        current.deadline = performance.now() + request.timeoutMs;
      },
      onSent: () => {
        sent = true;
      },
      onCut: () => lose(new Error('The client left.')),
    });
  }

  const connection: LeanConnection = {
    get used() {
      return used;
    },
    get exchange() {
      return exchange;
    },
    idleSince: 0,
    send(next) {
      exchange = next;
      next.connection = connection;
      soon(transmit);
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    destroy() {
      release();
      if (!gone) drop();
    },
  };
  return connection;
}

function headText(
  { method, path, headers, body, contentLength }: UpstreamRequest,
  authority: string,
): string {
  let text = `${method} ${path} HTTP/1.1\r\nhost: ${authority}\r\n`;
  if (body && contentLength === null) text += 'transfer-encoding: chunked\r\n';
  for (let i = 0; i < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return `${text}\r\n`;
}
