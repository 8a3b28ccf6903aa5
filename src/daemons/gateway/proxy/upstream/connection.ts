import { connect, type Socket } from 'node:net';
import { atTurnEnd } from '../../../../kit/time/turn-end.ts';
import type { UpstreamHandler, UpstreamRequest } from './client.ts';
import { sendBody } from './request-body.ts';
import { ProtocolError, type ResponseEvents, ResponseParser } from './response-parser.ts';

/** One request to an upstream and its response. */
export interface Exchange {
  request: UpstreamRequest;
  handler: UpstreamHandler;
  /**
   * Value of `performance.now()` by which the response head must arrive. Each sent chunk of the request body extends
   * the deadline.
   */
  deadline: number;
  /** Whether writing the request to the socket has begun. */
  begun: boolean;
  /** Whether the head of the response has arrived. */
  answered: boolean;
  /**
   * The connection that carries the exchange, until the exchange ends. A separate map from exchanges to connections
   * took an eighth of the gateway's CPU time.
   */
  connection: UpstreamConnection | undefined;
}

export interface ConnectionEvents {
  /** Callback that is called when an exchange has succeeded and the connection can be reused. */
  onIdle(connection: UpstreamConnection): void;
  /**
   * Callback that is called when the connection has closed. `exchange` is the exchange that was interrupted, if any.
   */
  onLost(connection: UpstreamConnection, exchange: Exchange | undefined, error: Error): void;
}

const soon = atTurnEnd((transmit: () => void) => transmit());

/**
 * A keep-alive connection to an upstream. Carries one exchange at a time. All exchanges share the socket listeners,
 * because adding listeners for each exchange is slow.
 */
export class UpstreamConnection implements ResponseEvents {
  /** `performance.now()` when the connection became idle. */
  idleSince = 0;
  readonly #events: ConnectionEvents;
  readonly #authority: string;
  readonly #socket: Socket;
  readonly #parser = new ResponseParser(this);
  readonly #transmit = (): void => this.#sendRequest();
  #exchange: Exchange | undefined;
  #used = false;
  #gone = false;
  /**
   * Whether the request body was sent completely. If the response ends before the request body, the connection is not
   * reused.
   */
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

  /**
   * Returns whether the connection has completed an exchange. The upstream can close a reused connection at any time.
   */
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

  /** Closes the connection and aborts its exchange without calling the handler. */
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
    // The socket is paused at this point if the client reads the response slowly.
    this.#socket.resume();
    if (reusable && this.#sent) this.#events.onIdle(this);
    else this.#drop();
    ended.handler.onEnd();
  }

  #read(chunk: Buffer): void {
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
    // The exchange might have been aborted before the end of the event loop turn.
    if (!this.#exchange) return;
    const current = this.#exchange;
    const { request } = current;
    current.begun = true;
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
