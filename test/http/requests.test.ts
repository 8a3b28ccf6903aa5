import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { HEADERS } from '../../src/contracts/index.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { answerWhileSending } from '../support/late-body.ts';
import { echo, sampleDaemon } from '../support/sample-daemon.ts';

const sample = () =>
  startTestDaemon(
    sampleDaemon(
      echo({
        method: 'GET',
        path: '/items/:id',
        params: z.object({ id: z.string().max(40) }),
        query: z.object({ limit: z.coerce.number().int().default(10) }),
      }),
      echo({
        method: 'POST',
        path: '/items',
        body: z.strictObject({
          name: z.string().min(2),
          count: z.number().int(),
          tags: z.array(z.string()).default([]),
        }),
      }),
      echo({ method: 'POST', path: '/small', body: z.json() }, { bodyLimitBytes: 100 }),
      echo({ method: 'POST', path: '/anything', body: z.json() }),
      (http) =>
        http.get('/boom', () => {
          throw new Error('the database password is hunter2');
        }),
    ),
  );
type Sample = Awaited<ReturnType<typeof sample>>;

/** Sends bytes as they are and reads what comes back until the other side closes. */
function raw(daemon: Sample, text: string): Promise<{ status: number; head: string; body: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect(daemon.port, '127.0.0.1', () => socket.write(text, 'latin1'));
    let received = '';
    socket.setEncoding('utf8').on('data', (part: string) => {
      received += part;
    });
    socket.on('error', reject).on('close', () => {
      const [head = '', body = ''] = received.split('\r\n\r\n');
      resolve({ status: Number(head.split(' ')[1]), head: head.toLowerCase(), body });
    });
  });
}

async function post(
  daemon: Sample,
  path: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
) {
  const response = await daemon.fetch(path, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...headers },
  });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as {
      error: { code: string; message: string; details: Record<string, unknown> };
    },
  };
}

describe('validation', () => {
  test('every fault of a body is listed with its path', async () => {
    const { status, body } = await post(
      await sample(),
      '/items',
      '{"name":"x","count":1.5,"tags":[1],"more":true}',
    );
    expect(status).toBe(400);
    expect(body.error.code).toBe('VALIDATION_ERROR');
    const issues = body.error.details.issues as Array<{ path: string }>;
    expect(issues.map(({ path }) => path).sort()).toEqual([
      'body.count',
      'body.more',
      'body.name',
      'body.tags.0',
    ]);
    expect(body.error.message).toContain('3 more');
  });

  test.each([
    ['twice the same key', '/items/1?limit=1&limit=2'],
    ['no number', '/items/1?limit=ten'],
    ['a parameter that is too long', `/items/${'x'.repeat(41)}`],
  ])('%s is 400', async (_, path) => {
    const response = await (await sample()).fetch(path);
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: expect.objectContaining({ code: 'VALIDATION_ERROR' }) },
    ]);
  });

  test('a query of "__proto__" changes nothing', async () => {
    const daemon = await sample();
    const response = await daemon.fetch('/items/1?__proto__=1&constructor=2&limit=3');
    expect(await response.json()).toMatchObject({ query: { limit: 3 } });
    expect(({} as Record<string, unknown>).limit).toBeUndefined();
  });
});

describe('bodies', () => {
  test.each([
    ['cut off', '{"a":'],
    ['two documents', '{} {}'],
    ['deeper than 512 levels', '['.repeat(513) + ']'.repeat(513)],
    ['a number that JSON does not have', '{"a":NaN}'],
    ['more than 500,000 values', `[${'[],'.repeat(500_000)}[]]`],
    ['more than 50,000 different keys', `{${Array.from({ length: 65_000 }, (_, n) => `"${n}":0`)}}`],
  ])('%s is 400', async (_, text) => {
    const { status, body } = await post(await sample(), '/anything', text);
    expect([status, body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
  });

  test('512 levels are accepted, and braces in strings do not count', async () => {
    const daemon = await sample();
    for (const text of [
      '['.repeat(512) + ']'.repeat(512),
      JSON.stringify('['.repeat(5000)),
      JSON.stringify(['"\\'.repeat(600)]),
    ]) {
      const response = await daemon.fetch('/anything', {
        method: 'POST',
        body: text,
        headers: { 'content-type': 'application/json' },
      });
      expect(response.status).toBe(200);
    }
  });

  test('"__proto__" in a body is data, not a prototype', async () => {
    const daemon = await sample();
    const response = await daemon.fetch('/anything', {
      method: 'POST',
      body: '{"__proto__":{"x":1}}',
      headers: { 'content-type': 'application/json' },
    });
    expect(response.status).toBe(200);
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  test('too large is 413 in our shape, and the connection closes', async () => {
    const daemon = await sample();
    const { status, headers, body } = await post(daemon, '/small', JSON.stringify('x'.repeat(200)));
    expect([status, body.error.code, headers.get('connection')]).toEqual([413, 'PAYLOAD_TOO_LARGE', 'close']);
    const chunked = await raw(
      daemon,
      `POST /small HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nc8\r\n"${'x'.repeat(198)}"\r\n0\r\n\r\n`,
    );
    expect([chunked.status, JSON.parse(chunked.body).error.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  });

  test.each([
    ['POST /small', '', '413 [^]*PAYLOAD_TOO_LARGE'],
    ['POST /nothing', '', '404 [^]*NOT_FOUND'],
    ['POST /items', 'content-encoding: gzip', '415 [^]*UNSUPPORTED_MEDIA_TYPE'],
  ])(
    'a client that keeps sending while refused can read the reason: %s %s',
    async (start, header, answered) => {
      const own = header === '' ? '' : `${header}\r\n`;
      const head = `${start} HTTP/1.1\r\ncontent-type: application/json\r\nconnection: close\r\n${own}`;
      const { answer, failed } = await answerWhileSending(await sample(), head);
      expect(failed).toBeUndefined();
      expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${answered}`));
      expect(answer).toMatch(/^connection: close\r$/im);
      expect(answer.match(/^x-request-id: /gim)).toHaveLength(1);
    },
  );

  test('unknown routes are 404, whatever the request body', async () => {
    const daemon = await sample();
    for (const type of ['application/json', 'text/plain']) {
      const { status, body } = await post(daemon, '/nothing', '{', { 'content-type': type });
      expect([status, body.error.code]).toEqual([404, 'NOT_FOUND']);
    }
  });

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', 'nonsense'])(
    'content type %s is 415',
    async (type) => {
      const { status, body } = await post(await sample(), '/items', '{}', { 'content-type': type });
      expect([status, body.error.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    },
  );

  test('a charset is accepted; a missing required body is 400', async () => {
    const daemon = await sample();
    const { status } = await post(daemon, '/items', '{"name":"ab","count":1}', {
      'content-type': 'application/json; charset=utf-8',
    });
    expect(status).toBe(200);
    expect((await daemon.fetch('/items', { method: 'POST' })).status).toBe(400);
    expect((await post(daemon, '/items', '', {})).status).toBe(400);
  });
});

describe('bodies that are encoded', () => {
  test.each(['gzip', 'br', 'x', 'identity, gzip'])('Content-Encoding: %s is 415', async (encoding) => {
    const daemon = await sample();
    const response = await daemon.fetch('/items', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-encoding': encoding },
      body: '{}',
    });
    expect([response.status, response.headers.get('accept-encoding')]).toEqual([415, 'identity']);
    expect(await response.json()).toMatchObject({
      error: { code: 'UNSUPPORTED_MEDIA_TYPE', message: expect.stringContaining(encoding) },
    });
  });

  test('identity is no encoding', async () => {
    const daemon = await sample();
    const headers = { 'content-type': 'application/json', 'content-encoding': 'Identity' };
    const response = await daemon.fetch('/items', { method: 'POST', headers, body: '{"name":"a"}' });
    expect(response.status).not.toBe(415);
  });

  test('transfer codings other than chunked are 501 and end the connection', async () => {
    const daemon = await sample();
    const { status, head } = await raw(
      daemon,
      'POST /items HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
    );
    expect(status).toBe(501);
    expect(head).toMatch(/^connection: close/im);
  });
});

describe('methods', () => {
  test('a known path with another method is 405 with the allowed methods', async () => {
    const daemon = await sample();
    for (const [method, path, allow] of [
      ['DELETE', '/items/1', 'GET, HEAD'],
      ['GET', '/items', 'POST'],
      ['POST', '/health', 'GET, HEAD'],
      ['PUT', '/docs/assets/swagger-ui.css', 'GET, HEAD'],
    ] as const) {
      const response = await daemon.fetch(path, { method });
      expect([response.status, response.headers.get('allow')], `${method} ${path}`).toEqual([405, allow]);
      expect(await response.json()).toEqual({
        error: {
          code: 'METHOD_NOT_ALLOWED',
          message: expect.stringContaining(allow),
          details: { method, allowed: allow.split(', ') },
        },
      });
    }
  });

  test('HEAD is GET without the body', async () => {
    const daemon = await sample();
    for (const path of ['/health', '/items/1', '/metrics', '/openapi.json', '/docs']) {
      const [head, get] = [await daemon.fetch(path, { method: 'HEAD' }), await daemon.fetch(path)];
      expect([head.status, await head.text(), head.headers.get('content-type')], path).toEqual([
        200,
        '',
        get.headers.get('content-type'),
      ]);
      await get.text();
    }
    expect((await daemon.fetch('/nothing', { method: 'HEAD' })).status).toBe(404);
  });
});

describe('a malformed request is answered in the error shape', () => {
  test.each([
    [
      'an unknown path',
      'GET /nothing HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n',
      404,
      'NOT_FOUND',
    ],
    [
      'a malformed escape',
      'GET /items/%zz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n',
      400,
      'VALIDATION_ERROR',
    ],
    [
      'a parameter beyond measure',
      `GET /items/${'x'.repeat(3000)} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`,
      404,
      'NOT_FOUND',
    ],
    [
      'headers beyond 16 KB',
      `GET /health HTTP/1.1\r\nhost: localhost\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`,
      431,
      'HEADERS_TOO_LARGE',
    ],
    ['a method nobody knows', 'BREW /health HTTP/1.1\r\nhost: localhost\r\n\r\n', 400, 'VALIDATION_ERROR'],
    ['no HTTP at all', 'hello\r\n\r\n', 400, 'VALIDATION_ERROR'],
    ['no host', 'GET /health HTTP/1.1\r\nconnection: close\r\n\r\n', 400, 'VALIDATION_ERROR'],
    [
      'both length and chunks',
      'POST /items HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}',
      400,
      'VALIDATION_ERROR',
    ],
    [
      'two lengths',
      'POST /items HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}',
      400,
      'VALIDATION_ERROR',
    ],
    [
      'a folded header',
      'GET /health HTTP/1.1\r\nhost: localhost\r\nx: a\r\n b\r\nconnection: close\r\n\r\n',
      400,
      'VALIDATION_ERROR',
    ],
    [
      'a body whose end no coding tells',
      'POST /items HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: identity\r\n\r\n{}',
      501,
      'NOT_IMPLEMENTED',
    ],
    ['a tunnel', 'CONNECT localhost:80 HTTP/1.1\r\nhost: localhost\r\n\r\n', 501, 'NOT_IMPLEMENTED'],
    [
      'a fragment',
      'GET /health#/x HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n',
      400,
      'VALIDATION_ERROR',
    ],
    [
      'an expectation nobody meets',
      'POST /items HTTP/1.1\r\nhost: localhost\r\nexpect: magic\r\ncontent-length: 2\r\n\r\n{}',
      417,
      'EXPECTATION_FAILED',
    ],
  ])('%s', async (_, text, status, code) => {
    const answer = await raw(await sample(), text);
    expect([answer.status, answer.head.includes('content-type: application/json')]).toEqual([status, true]);
    expect(JSON.parse(answer.body)).toEqual({
      error: { code, message: expect.any(String), details: expect.any(Object) },
    });
  });

  test('its duration is measured from its own start', async () => {
    const daemon = await sample();
    await raw(daemon, 'GET /items/%zz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
    const text = await (await daemon.fetch('/metrics')).text();
    const sum = /svc_http_request_duration_ms_sum\{[^}]*status="400"\} ([\d.e+-]+)/.exec(text);
    expect(Number(sum?.[1])).toBeLessThan(500);
    expect(Number(sum?.[1])).toBeGreaterThanOrEqual(0);
  });
});

test('an unexpected throw in a handler is an opaque 500, whose text is only in the log', async () => {
  const daemon = await sample();
  const response = await daemon.fetch('/boom', { headers: { [HEADERS.requestId]: 'req-9' } });
  expect(response.status).toBe(500);
  expect(response.headers.get(HEADERS.requestId)).toBe('req-9');
  const text = await response.text();
  expect(text).not.toContain('hunter2');
  expect(JSON.parse(text)).toEqual({
    error: { code: 'INTERNAL_ERROR', message: expect.stringContaining('request id'), details: {} },
  });
  expect(daemon.logs.lines).toContainEqual(
    expect.objectContaining({
      level: 'error',
      requestId: 'req-9',
      meta: expect.objectContaining({ error: expect.objectContaining({ name: 'Error' }) }),
    }),
  );
});

test('a valid request id is kept, any other is replaced', async () => {
  const daemon = await sample();
  const idFor = async (sent: string) =>
    (await daemon.fetch('/health', { headers: { [HEADERS.requestId]: sent } })).headers.get(
      HEADERS.requestId,
    );
  expect(await idFor('mine-1')).toBe('mine-1');
  for (const odd of ['', 'two words', 'x'.repeat(129)]) expect(await idFor(odd)).toMatch(/^[0-9a-f-]{36}$/);
});

describe('requests that router, authentication and logs could read differently', () => {
  test.each(['/items/../boom', '/./items/1', '/items/%2e%2e', '/items\\1', '/items/%zz', '/items/..'])(
    '%s is 400',
    async (path) => {
      const daemon = await sample();
      const { status, body } = await raw(
        daemon,
        `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`,
      );
      expect([status, JSON.parse(body).error.code]).toEqual([400, 'VALIDATION_ERROR']);
    },
  );

  test('two Host headers are 400, whichever comes first', async () => {
    const daemon = await sample();
    for (const hosts of ['host: localhost\r\nHost: evil.example', 'Host: evil.example\r\nhost: localhost']) {
      const { status } = await raw(daemon, `GET /items/1 HTTP/1.1\r\n${hosts}\r\nconnection: close\r\n\r\n`);
      expect(status).toBe(400);
    }
  });
});

test('also an answer to what is no HTTP carries a request id', async () => {
  const { head, status } = await raw(await sample(), 'GARBAGE\r\n\r\n');
  expect(status).toBe(400);
  expect(head).toMatch(/\r\nx-request-id: [0-9a-f-]{36}/);
});

test('a WebSocket where there is none gets an HTTP answer', async () => {
  const upgrade =
    'connection: close, upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==';
  const { status } = await raw(
    await sample(),
    `GET /nothing HTTP/1.1\r\nhost: localhost\r\n${upgrade}\r\n\r\n`,
  );
  expect(status).toBe(404);
});
