export interface ResponseEvents {
  /**
   * Callback that is called once per response, but not for interim responses (1xx). `headers` is a flat list of names
   * and values.
   */
  onHead(status: number, headers: string[]): void;
  onData(chunk: Buffer): void;
  /**
   * Callback that is called at the end of the response. `reusable` is true if the connection can carry another request.
   */
  onEnd(reusable: boolean): void;
}

export class ProtocolError extends Error {
  readonly code = 'UPSTREAM_PROTOCOL_ERROR';
}

const MAX_HEAD_BYTES = 64 * 1024;
const MAX_CHUNK_LINE = 256;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const NAME = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the expression finds control characters
const BAD_VALUE = /[\x00-\x08\x0a-\x1f\x7f]/;
const DIGITS = /^\d{1,15}$/;
const CHUNK_SIZE = /^([\da-fA-F]{1,13})[\t ]*(?:;.*)?$/;

type State =
  | 'idle'
  | 'head'
  | 'length'
  | 'until-close'
  | 'chunk-size'
  | 'chunk-data'
  | 'chunk-end'
  | 'trailers';

/** Values of `#left` for bodies without a known length. */
const CHUNKED = -1;
const UNTIL_CLOSE = -2;

/**
 * Parses the HTTP/1.1 responses of one connection. Rejects malformed responses that would enable response splitting,
 * such as repeated `Content-Length` headers.
 */
export class ResponseParser {
  readonly #events: ResponseEvents;
  #state: State = 'idle';
  #method = '';
  #held: Buffer | undefined;
  /** Number of unread bytes of the body or chunk. Alternatively, the constant `CHUNKED` or `UNTIL_CLOSE`. */
  #left = 0;
  #keepAlive = true;

  constructor(events: ResponseEvents) {
    this.#events = events;
  }

  /** Prepares the parser for the response to a request. `method` decides whether that response has a body. */
  expect(method: string): void {
    this.#method = method;
    this.#state = 'head';
    this.#held = undefined;
  }

  /**
   * Parses received bytes. Throws ProtocolError for invalid HTTP/1.1. After an error, the caller must close the
   * connection.
   */
  push(chunk: Buffer): void {
    let bytes: Buffer | undefined = this.#held ? Buffer.concat([this.#held, chunk]) : chunk;
    this.#held = undefined;
    while (bytes !== undefined) {
      const before: Buffer = bytes;
      bytes = this.#step(before);
      if (bytes === undefined && keepsBytes(this.#state)) this.#held = before;
    }
  }

  /**
   * Handles the end of the upstream's connection, which completes a response without a known length. Throws
   * ProtocolError for all other responses, because these are incomplete.
   */
  end(): void {
    if (this.#state !== 'until-close')
      throw new ProtocolError('It closed the connection before its answer was complete.');
    this.#state = 'idle';
    this.#events.onEnd(false);
  }

  /**
   * Parses the next element of the response, such as the head or a chunk size. Returns the remaining bytes. Returns
   * undefined if more bytes are needed or the response has ended.
   */
  #step(bytes: Buffer): Buffer | undefined {
    switch (this.#state) {
      case 'head':
        return this.#readHead(bytes);
      case 'length':
      case 'chunk-data':
        return this.#readBody(bytes);
      case 'until-close':
        if (bytes.length > 0) this.#events.onData(bytes);
        return undefined;
      case 'chunk-size': {
        const line = takeLine(bytes);
        if (!line) return undefined;
        const size = CHUNK_SIZE.exec(line.text)?.[1];
        if (size === undefined) throw new ProtocolError('A chunk has a malformed size.');
        this.#left = Number.parseInt(size, 16);
        this.#state = this.#left === 0 ? 'trailers' : 'chunk-data';
        return line.rest;
      }
      case 'chunk-end':
        if (bytes.length < 2) return undefined;
        if (bytes[0] !== 13 || bytes[1] !== 10) throw new ProtocolError('A chunk is longer than its size.');
        this.#state = 'chunk-size';
        return bytes.subarray(2);
      case 'trailers': {
        // Trailers are dropped, because the head has already been sent to the client.
        const line = takeLine(bytes);
        if (!line) return undefined;
        if (line.text !== '') return line.rest;
        this.#finish(line.rest);
        return undefined;
      }
      case 'idle':
        if (bytes.length > 0) throw new ProtocolError('It sent bytes without a request.');
        return undefined;
    }
  }

  #readHead(bytes: Buffer): Buffer | undefined {
    const end = bytes.indexOf('\r\n\r\n');
    if (end > MAX_HEAD_BYTES || (end === -1 && bytes.length > MAX_HEAD_BYTES))
      throw new ProtocolError('Its headers are larger than 64 KB.');
    if (end === -1) return undefined;
    const rest = bytes.subarray(end + 4);
    if (!this.#takeHead(bytes.toString('latin1', 0, end))) return rest;
    if (this.#left === 0) {
      this.#finish(rest);
      return undefined;
    }
    if (this.#left === CHUNKED) this.#state = 'chunk-size';
    else this.#state = this.#left === UNTIL_CLOSE ? 'until-close' : 'length';
    return rest;
  }

  /** Parses the head of a response. Returns false for an interim response (1xx), because a further head follows. */
  #takeHead(text: string): boolean {
    const head = readHead(text);
    if (head.status < 200) {
      if (head.status === 101) throw new ProtocolError('It switched protocols unasked.');
      return false;
    }
    const bodiless = this.#method === 'HEAD' || head.status === 204 || head.status === 304;
    if (bodiless) this.#left = 0;
    else if (head.chunked) this.#left = CHUNKED;
    else this.#left = head.length ?? UNTIL_CLOSE;
    this.#keepAlive = head.keepAlive && this.#left !== UNTIL_CLOSE;
    this.#events.onHead(head.status, head.headers);
    return true;
  }

  #readBody(bytes: Buffer): Buffer | undefined {
    if (bytes.length === 0) return undefined;
    const part = bytes.length <= this.#left ? bytes : bytes.subarray(0, this.#left);
    this.#left -= part.length;
    const rest = bytes.subarray(part.length);
    this.#events.onData(part);
    if (this.#left > 0) return undefined;
    if (this.#state === 'length') {
      this.#finish(rest);
      return undefined;
    }
    this.#state = 'chunk-end';
    return rest;
  }

  #finish(rest: Buffer): void {
    this.#state = 'idle';
    if (rest.length > 0) throw new ProtocolError('It sent more than its answer.');
    this.#events.onEnd(this.#keepAlive);
  }
}

/** Returns whether the parser keeps incomplete input in this state until more bytes arrive. */
function keepsBytes(state: State): boolean {
  return state === 'head' || state === 'chunk-size' || state === 'chunk-end' || state === 'trailers';
}

function takeLine(bytes: Buffer): { text: string; rest: Buffer } | undefined {
  const end = bytes.indexOf('\r\n');
  if (end > MAX_CHUNK_LINE || (end === -1 && bytes.length > MAX_CHUNK_LINE))
    throw new ProtocolError('A line of a chunked body is too long.');
  return end === -1 ? undefined : { text: bytes.toString('latin1', 0, end), rest: bytes.subarray(end + 2) };
}

interface Head {
  status: number;
  headers: string[];
  keepAlive: boolean;
  chunked: boolean;
  length: number | undefined;
}

function readHead(text: string): Head {
  let from = text.indexOf('\r\n');
  const statusLine = STATUS_LINE.exec(from === -1 ? text : text.slice(0, from));
  if (!statusLine) throw new ProtocolError('Its status line is malformed.');
  const head: Head = {
    status: Number(statusLine[2]),
    headers: [],
    keepAlive: statusLine[1] === '1',
    chunked: false,
    length: undefined,
  };
  while (from !== -1) {
    const next = text.indexOf('\r\n', from + 2);
    readHeader(text.slice(from + 2, next === -1 ? undefined : next), head);
    from = next;
  }
  if (head.chunked && head.length !== undefined)
    throw new ProtocolError('It sent both Content-Length and Transfer-Encoding.');
  return head;
}

function readHeader(line: string, head: Head): void {
  const colon = line.indexOf(':');
  const name = line.slice(0, Math.max(0, colon)).toLowerCase();
  const value = line.slice(colon + 1).trim();
  if (!NAME.test(name) || BAD_VALUE.test(value)) throw new ProtocolError('One of its headers is malformed.');
  head.headers.push(name, value);
  switch (name) {
    case 'content-length':
      if (!DIGITS.test(value) || head.length !== undefined)
        throw new ProtocolError('Its Content-Length is malformed.');
      head.length = Number(value);
      break;
    case 'transfer-encoding':
      if (value.toLowerCase() !== 'chunked' || head.chunked)
        throw new ProtocolError('It uses a transfer coding other than chunked.');
      head.chunked = true;
      break;
    case 'connection':
      if (/(?:^|,)\s*close\s*(?:,|$)/i.test(value)) head.keepAlive = false;
      break;
  }
}
