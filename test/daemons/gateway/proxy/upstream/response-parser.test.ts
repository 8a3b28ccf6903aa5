import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ResponseParser } from '../../../../../src/daemons/gateway/proxy/upstream/response-parser.ts';

interface Seen {
  status: number;
  headers: string[];
  body: string;
  ended: number;
  reusable: boolean | null;
}

/** Reads one answer given in these pieces; `closed` ends the connection behind them. */
function read(pieces: Buffer[], method = 'GET', closed = false): Seen {
  const seen: Seen = { status: 0, headers: [], body: '', ended: 0, reusable: null };
  const parser = new ResponseParser({
    onHead: (status, headers) => Object.assign(seen, { status, headers }),
    onData: (chunk) => {
      seen.body += chunk.toString('latin1');
    },
    onEnd: (reusable) => {
      seen.ended++;
      seen.reusable = reusable;
    },
  });
  parser.expect(method);
  for (const piece of pieces) parser.push(piece);
  if (closed) parser.end();
  return seen;
}

function cut(text: string, at: number[]): Buffer[] {
  const points = [...new Set([0, ...at.map((point) => point % text.length), text.length])].sort(
    (a, b) => a - b,
  );
  return points.slice(1).map((end, index) => Buffer.from(text.slice(points[index], end), 'latin1'));
}

const body = fc.string({ unit: 'binary-ascii', maxLength: 200 });
const cuts = fc.array(fc.nat(), { maxLength: 30 });
const head = (framing: string): string => `HTTP/1.1 200 OK\r\nX-Case: Yes\r\n${framing}\r\n`;

function chunked(text: string, sizes: number[]): string {
  let [out, at] = ['', 0];
  for (const size of sizes) {
    const part = text.slice(at, at + size + 1);
    if (part === '') break;
    out += `${part.length.toString(16)};x=1\r\n${part}\r\n`;
    at += part.length;
  }
  const rest = text.slice(at);
  if (rest) out += `${rest.length.toString(16)}\r\n${rest}\r\n`;
  return `${out}0\r\nTrailer: dropped\r\n\r\n`;
}

test('an answer split at any byte parses the same', () => {
  fc.assert(
    fc.property(body, cuts, fc.array(fc.nat(50), { maxLength: 10 }), (text, at, sizes) => {
      const expected = { status: 200, body: text, ended: 1, reusable: true };
      const counted = read(cut(head(`content-length: ${text.length}\r\n`) + text, at));
      expect(counted).toMatchObject(expected);
      expect(counted.headers).toEqual(['x-case', 'Yes', 'content-length', String(text.length)]);
      expect(read(cut(head('transfer-encoding: chunked\r\n') + chunked(text, sizes), at))).toMatchObject(
        expected,
      );
      const interim = `HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n`;
      expect(read(cut(interim + head(`content-length: ${text.length}\r\n`) + text, at))).toMatchObject(
        expected,
      );
      const untilClose = read(cut(head('') + text, at), 'GET', true);
      expect(untilClose).toMatchObject({ ...expected, reusable: false });
    }),
  );
});

test('an answer cut off before its end is an error, not a shorter answer', () => {
  const whole = [
    `${head('content-length: 5\r\n')}hello`,
    head('transfer-encoding: chunked\r\n') + chunked('hello', [1]),
  ];
  for (const text of whole) {
    for (let end = 1; end < text.length; end++) {
      expect(() => read([Buffer.from(text.slice(0, end))], 'GET', true)).toThrow();
    }
  }
});

test('the parser ends or throws on any bytes, and never ends twice', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), cuts, (bytes, at) => {
      const text = head('transfer-encoding: chunked\r\n') + Buffer.from(bytes).toString('latin1');
      let ended = 0;
      try {
        ended = read(cut(text, at)).ended;
      } catch {
        // What is no HTTP is refused.
      }
      expect(ended).toBeLessThanOrEqual(1);
    }),
  );
});

test.each(['Connection: close', 'Connection: x, Close'])('"%s" spends the connection', (line) => {
  expect(read([Buffer.from(head(`content-length: 0\r\n${line}\r\n`))])).toMatchObject({
    ended: 1,
    reusable: false,
  });
});

test('HEAD, 204 and 304 have no body, whatever their headers announce', () => {
  expect(read([Buffer.from(head('content-length: 9\r\n'))], 'HEAD')).toMatchObject({ ended: 1, body: '' });
  for (const status of [204, 304]) {
    const text = `HTTP/1.1 ${status} X\r\ntransfer-encoding: chunked\r\n\r\n`;
    expect(read([Buffer.from(text)])).toMatchObject({ status, ended: 1, reusable: true });
  }
});
