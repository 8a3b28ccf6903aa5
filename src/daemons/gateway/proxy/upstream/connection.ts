import { connect, type Socket } from 'node:net';
import { atTurnEnd } from '../../../../kit/time/turn-end.ts';
import type { UpstreamHandler, UpstreamRequest } from './client.ts';
import { sendBody } from './request-body.ts';
import { ProtocolError, type ResponseEvents, ResponseParser } from './response-parser.ts';

/** One exchange on a connection. */
export interface Exchange {
  request: UpstreamRequest;
  handler: UpstreamHandler;
  /** `performance.now()` at which the head is overdue; extended while the body is sent. */
  deadline: number;
  /** Whether any of the request has been written. */
  begun: boolean;
  /** Whether the head of the response has arrived. */
  answered: boolean;
  /**
   * The connection of the exchange, until it ends. Not a map of exchanges, which would be rehashed with each request:
   * that took an eighth of the gateway's CPU time.
   */
  connection: UpstreamConnection | undefined;
}

export interface ConnectionEvents {
  /** The exchange succeeded, and the connection can carry another. */
  onIdle(connection: UpstreamConnection): void;
  /** The connection has closed, with the exchange that it carried. */
  onLost(connection: UpstreamConnection, exchange: Exchange | undefined, error: Error): void;
}

const soon = atTurnEnd((transmit: () => void) => transmit());

/**
 * A keep-alive socket to an upstream. Its listeners serve all exchanges: adding them for each would cost more than the
 * request.
 */
export class UpstreamConnection implements ResponseEvents {
  /** `performance.now()` when it became idle. */
  idleSince = 0;
  readonly #events: ConnectionEvents;
  readonly #authority: string;
  readonly #socket: Socket;
  readonly #parser = new ResponseParser(this);
  readonly #transmit = (): void => this.#sendRequest();
  #exchange: Exchange | undefined;
  #used = false;
  #gone = false;
  /** Whether the request is completely sent. After a response that came earlier, the connection is not reused. */
  #sent = true;

  constructor(host: string, port: number, events: ConnectionEvents) {
    this.#events = events;
    this.#authority = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
    this.#socket = connect({ host, port, noDelay: true })
      .on('data', (chunk: Buffer) => this.#read(chunk))
      .on('end', () => this.#readEnd())
      .on('error', (error) => this.#lose(error))
      .on('close', () =>
        this.#lose(new ProtocolError('It closed the connection before its answer was complete.')),
      );
  }

  /** Whether the connection has carried an exchange before; only then may the upstream be closing it as idle. */
  get used(): boolean {
    return this.#used;
  }

  get exchange(): Exchange | undefined {
    return this.#exchange;
  }

  send(exchange: Exchange): void {
    this.#exchange = exchange;
    exchange.connection = this;
    soon(this.#transmit);
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Closes it and aborts its exchange without calling the handler. */
  destroy(): void {
    this.#release();
    if (!this.#gone) this.#drop();
  }

  onHead(status: number, headers: string[]): void {
    const exchange = this.#exchange!;
    exchange.answered = true;
    exchange.handler.onHead(status, headers);
  }

  onData(chunk: Buffer): void {
    if (this.#exchange && !this.#exchange.handler.onData(chunk)) this.#socket.pause();
  }

  onEnd(reusable: boolean): void {
    const ended = this.#exchange!;
    this.#release();
    this.#used = true;
    // A slow client may have paused it before the end.
    this.#socket.resume();
    if (reusable && this.#sent) this.#events.onIdle(this);
    else this.#drop();
    ended.handler.onEnd();
  }

  #read(chunk: Buffer): void {
    // Bytes of an aborted exchange may still arrive.
    if (this.#gone) return;
    try {
      this.#parser.push(chunk);
    } catch (error) {
      this.#lose(error as Error);
    }
  }

  #readEnd(): void {
    if (this.#gone) return;
    try {
      if (this.#exchange) this.#parser.end();
      else this.#lose(new Error('closed'));
    } catch (error) {
      this.#lose(error as Error);
    }
  }

  #release(): void {
    if (this.#exchange) this.#exchange.connection = undefined;
    this.#exchange = undefined;
  }

  #drop(): void {
    this.#gone = true;
    this.#socket.destroy();
    this.#events.onLost(this, undefined, new Error('closed'));
  }

  #lose(error: Error): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#socket.destroy();
    const lost = this.#exchange;
    this.#release();
    this.#events.onLost(this, lost, error);
  }

  #sendRequest(): void {
    // Aborted in the meantime, or its connection has closed.
    if (!this.#exchange) return;
    const current = this.#exchange;
    const { request } = current;
    current.begun = true;
    // Bytes before this point are not a response.
    this.#parser.expect(request.method);
    const head = headText(request, this.#authority);
    if (!request.body) {
      this.#socket.write(head, 'latin1');
      return;
    }
    this.#sent = false;
    sendBody(this.#socket, head, request.body, request.contentLength, {
      current: () => this.#exchange === current,
      onProgress: () => {
        current.deadline = performance.now() + request.timeoutMs;
      },
      onSent: () => {
        this.#sent = true;
      },
      onCut: () => this.#lose(new Error('The client left.')),
    });
  }
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
