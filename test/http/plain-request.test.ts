import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPlainHead } from '../../src/http/plain/request.ts';

/** What node:http, with our limits, makes of the first request in some bytes; null when it refuses them. */
interface NodeView {
  method: string;
  url: string;
  rawHeaders: string[];
  body: string;
  minor: number;
}

const server = createServer({ maxHeaderSize: 16 * 1024, requireHostHeader: false });
let port = 0;
let seen: (view: NodeView | null) => void = () => {};

beforeAll(async () => {
  server.on('request', (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      seen({
        method: request.method!,
        url: request.url!,
        rawHeaders: request.rawHeaders,
        body: Buffer.concat(chunks).toString('latin1'),
        minor: request.httpVersionMinor,
      });
      response.end();
    });
    request.on('error', () => seen(null));
  });
  server.on('clientError', (_error, socket) => {
    seen(null);
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => void server.close());

function asNodeReads(bytes: Buffer): Promise<NodeView | null> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.end(bytes));
    seen = (view) => {
      resolve(view);
      socket.destroy();
    };
    socket.on('error', () => {}).on('close', () => resolve(null));
    socket.resume();
  });
}

const name = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom('X-A', 'content-type', 'x-hub-signature-256', 'accept', '_x', '1'),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      'Host',
      'hOST',
      'Connection',
      'Expect',
      'Upgrade',
      'TE',
      'Trailer',
      'Keep-Alive',
    ),
  },
  { weight: 2, arbitrary: fc.constantFrom('Content-Length', 'content-length', 'Transfer-Encoding') },
  { weight: 1, arbitrary: fc.string({ minLength: 1, maxLength: 6 }) },
);
const value = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom('a', 'a b', 'application/json', '0', '2', '5', 'keep-alive', 'close'),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('chunked', '2, 2', '+2', '02', '2 ', ' 2', '0x2', '-1', '100-continue', ''),
  },
  { weight: 1, arbitrary: fc.string({ maxLength: 12, unit: 'binary' }) },
);
const colon = fc.oneof(
  { weight: 8, arbitrary: fc.constant(': ') },
  fc.constantFrom(':', ' : ', ':  ', ':\t', ':\r\n '),
);
const lineEnd = fc.oneof(
  { weight: 15, arbitrary: fc.constant('\r\n') },
  fc.constantFrom('\n', '\r', ' \r\n', '\r\r\n'),
);
const header = fc.tuple(name, colon, value, lineEnd).map((parts) => parts.join(''));
const requestLine = fc
  .tuple(
    fc.oneof(
      { weight: 8, arbitrary: fc.constant('POST') },
      fc.constantFrom('GET', 'post', 'BREW', 'PRI', 'CONNECT'),
    ),
    fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom('/', '/webhooks/a/b?c=d&e', '/%2e/@x') },
      fc.webPath(),
      fc.string(),
    ),
    fc.oneof(
      { weight: 8, arbitrary: fc.constant(' HTTP/1.1') },
      fc.constantFrom(' HTTP/1.0', '  HTTP/1.1', ' HTTP/2.0'),
    ),
    lineEnd,
  )
  .map(([method, path, version, end]) => `${method} ${path}${version}${end}`);
const requests = fc
  .record({
    line: requestLine,
    host: fc.oneof({ weight: 5, arbitrary: fc.constant('Host: a\r\n') }, fc.constant('')),
    headers: fc.array(header, { maxLength: 4 }).map((all) => all.join('')),
    end: lineEnd,
    body: fc.oneof(fc.constantFrom('', '{}', '{"a":1}', '2\r\n{}\r\n0\r\n\r\n'), fc.string({ maxLength: 8 })),
  })
  .map(({ line, host, headers, end, body }) => Buffer.from(line + host + headers + end + body, 'latin1'));

test('what is taken as a plain request, node:http reads alike to the last byte', async () => {
  let taken = 0;
  await fc.assert(
    fc.asyncProperty(requests, async (bytes) => {
      const head = readPlainHead(bytes);
      if (!head || bytes.length < head.end) return;
      taken++;
      const { url, rawHeaders, bodyStart, end } = head;
      const body = bytes.toString('latin1', bodyStart, end);
      expect(await asNodeReads(bytes.subarray(0, end))).toEqual({
        method: 'POST',
        url,
        rawHeaders,
        body,
        minor: 1,
      });
    }),
    { numRuns: 3000 },
  );
  // Else it would say nothing.
  expect(taken).toBeGreaterThan(200);
});

test('a head is read the same whatever of the body is there, and what follows it', () => {
  fc.assert(
    fc.property(requests, fc.nat(), (bytes, cut) => {
      const head = readPlainHead(bytes);
      if (!head) return;
      const early = readPlainHead(bytes.subarray(0, cut % head.end));
      expect(early === undefined || early.end === head.end).toBe(true);
      expect(readPlainHead(Buffer.concat([bytes, Buffer.from('POST /')]))).toEqual(head);
    }),
    { numRuns: 2000 },
  );
});

const FINE = 'POST /webhooks/a/b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n';

test.each([
  ['a second Host', 'Host: b\r\n'],
  ['a second length', 'Content-Length: 2\r\n'],
  ['a length beside chunks', 'Transfer-Encoding: chunked\r\n'],
  ['an expectation', 'Expect: 100-continue\r\n'],
  ['an upgrade', 'Upgrade: websocket\r\n'],
  ['a connection that is to close', 'Connection: close\r\n'],
  ['a folded value', 'X-A: 1\r\n 2\r\n'],
  ['a bare line feed', 'X-A: 1\nX-B: 2\r\n'],
  ['a NUL', 'X-A: 1\0\r\n'],
  ['bytes beyond ASCII', 'X-A: \xe9\r\n'],
  ['a blank before the colon', 'X-A : 1\r\n'],
  ['a value without end', `X-A:${' '.repeat(8000)}\r\n`],
])('%s is left to node:http', (_what, header) => {
  expect(readPlainHead(Buffer.from(`${FINE}\r\n{}`))).toMatchObject({ url: '/webhooks/a/b' });
  expect(readPlainHead(Buffer.from(`${FINE}${header}\r\n{}`, 'latin1'))).toBeUndefined();
});

test.each([
  ['no Host', 'POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}'],
  ['HTTP/1.0', 'POST / HTTP/1.0\r\nHost: a\r\n\r\n'],
  ['a whole URL as its target', 'POST http://a/ HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a fragment', 'POST /#a HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a head that is not whole', 'POST / HTTP/1.1\r\nHost: a\r\n'],
  ['a large head', `POST / HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(9000)}\r\n\r\n`],
  ['a body of more than 64 KiB', 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 65536\r\n\r\n'],
])('%s is left to node:http', (_what, text) => {
  expect(readPlainHead(Buffer.from(text))).toBeUndefined();
});
