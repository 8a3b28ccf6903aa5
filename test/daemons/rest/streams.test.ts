import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from '../../../src/contracts/index.ts';
import { createClient } from '../../../src/http/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { writeFiles } from '../marketplace/support.ts';
import { asCaller, startRest, type TestRest } from './support.ts';

const route = (path: string, extra: object = {}) => ({
  method: 'GET',
  path: `/${path}`,
  handler: `routes.js#${path.replaceAll('-', '_')}`,
  ...extra,
});

const PLUGIN = {
  'package.json': { name: 'streamer', type: 'module' },
  'svc.plugin.json': {
    schema: 'svc.plugin/3',
    id: 'streamer',
    version: '1.0.0',
    rest: {
      basePath: '/v1/plugins/streamer',
      routes: [
        route('events'),
        route('bytes'),
        route('much'),
        route('plenty'),
        route('uneven'),
        route('breaks'),
        route('stalls', { timeoutMs: 2000 }),
        route('odd-type'),
        route('odd-piece'),
        route('no-source'),
        route('floods'),
        route('count'),
      ],
    },
    commands: [{ id: 'streams', handler: 'routes.js#bytes' }],
  },
  'routes.js': `
    import { writeSync } from 'node:fs';
    import { eventStream, ok, stream } from 'svc-platform/sdk';

    const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    let produced = 0;
    export const count = () => produced;
    export const events = () => eventStream((async function* () {
      yield { event: 'tick\\ndata: forged', id: '1', data: 'one\\ntwo' };
      await pause(700);
      yield { data: { n: 2 }, retry: 1000 };
    })());
    export const bytes = () => ok(stream([new Uint8Array([0, 255]), 'text'], { contentType: 'image/x-test' }));
    const pieces = (most) => (ctx) => stream((async function* () {
      const piece = new Uint8Array(64 * 1024).fill(7);
      try {
        for (; produced < most; produced++) yield piece;
      } finally {
        ctx.log.info('source closed', { aborted: ctx.signal.aborted, produced });
      }
    })());
    export const much = pieces(2000);
    export const plenty = pieces(400);
    export const uneven = () => stream((async function* () {
      for (let i = 0; i < 200; i++) yield new Uint8Array(100_000).fill(i);
    })());
    export const breaks = () => stream((async function* () {
      yield 'half of it';
      throw new Error('the secret recipe is 42');
    })());
    export const stalls = () => stream((async function* () {
      yield 'begun';
      await pause(60_000);
    })());
    export const odd_type = () => stream(['x'], { contentType: 'text/html\\r\\nset-cookie: a=b' });
    export const no_source = () => stream(null);
    export const odd_piece = () => stream([{ not: 'text' }]);
    export const floods = (ctx) => stream((async function* () {
      yield 'begun';
      await pause(200);
      const data = Buffer.alloc(300 * 1024).toString('base64');
      let left = Buffer.from(JSON.stringify({ type: 'chunk', executionId: ctx.executionId, data }) + '\\n');
      while (left.length > 0) {
        try {
          left = left.subarray(writeSync(3, left));
        } catch (error) {
          if (error.code !== 'EAGAIN') throw error;
        }
      }
      await pause(60_000);
    })());`,
};

async function start(): Promise<TestRest> {
  const projectDir = await tempDir();
  await writeFiles(join(projectDir, 'plugins/streamer'), PLUGIN);
  return startRest({ projectDir, dataDir: join(projectDir, '.svc') });
}
const open = (rest: TestRest, path: string, init?: RequestInit) =>
  rest.fetch(`/api/v1/plugins/streamer/${path}`, init);
const textOf = (value: Uint8Array | undefined) => Buffer.from(value ?? []).toString();

test('events arrive as they are sent, and cannot forge fields', async () => {
  const rest = await start();
  const response = await open(rest, 'events');
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  expect(response.headers.get('x-request-id')).toBeTruthy();
  expect(response.headers.get('content-security-policy')).toContain('sandbox');
  const reader = response.body!.getReader();
  expect(textOf((await reader.read()).value)).toBe(
    'event: tick data: forged\nid: 1\ndata: one\ndata: two\n\n',
  );
  const firstAt = performance.now();
  expect(textOf((await reader.read()).value)).toBe('retry: 1000\ndata: {"n":2}\n\n');
  // The second is made 700 ms after the first, which was here by then.
  expect(performance.now() - firstAt).toBeGreaterThan(300);
  expect((await reader.read()).done).toBe(true);
  expect(rest.logs.lines).toContainEqual(
    expect.objectContaining({ message: 'GET /api/v1/plugins/streamer/events 200' }),
  );
});

test('bytes are sent unchanged; a HEAD gets the headers', async () => {
  const rest = await start();
  const response = await open(rest, 'bytes');
  expect(response.headers.get('content-type')).toBe('image/x-test');
  expect(Buffer.from(await response.arrayBuffer())).toEqual(Buffer.from([0, 255, ...Buffer.from('text')]));
  const head = await open(rest, 'bytes', { method: 'HEAD' });
  expect([head.status, head.headers.get('content-type'), await head.text()]).toEqual([
    200,
    'image/x-test',
    '',
  ]);
});

test('a slow reader slows the handler; one that disconnects ends it', async () => {
  const rest = await start();
  const leaving = new AbortController();
  const response = await open(rest, 'much', { signal: leaving.signal });
  const reader = response.body!.getReader();
  await reader.read();
  // Time enough to make all of it, which takes 200 ms; what our sockets hold is far less.
  await new Promise((resolve) => setTimeout(resolve, 700));
  leaving.abort();
  const closed = () => rest.logs.lines.find(({ message }) => message === 'source closed');
  await expect.poll(closed).toMatchObject({ meta: { aborted: true } });
  expect((closed()!.meta as { produced: number }).produced).toBeLessThan(1000);
});

test('all events arrive in order, whatever their size and timing', async () => {
  const rest = await start();
  const response = await open(rest, 'plenty');
  let bytes = 0;
  for await (const piece of response.body!) {
    expect(Buffer.alloc(piece.length, 7).equals(piece)).toBe(true);
    bytes += piece.length;
  }
  expect(bytes).toBe(400 * 64 * 1024);
});

test('pieces that do not divide the window evenly wait for room, however slow the reader', async () => {
  const rest = await start();
  const response = await open(rest, 'uneven');
  // Nothing is read until every buffer on the way is full.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const bytes = Buffer.from(await response.arrayBuffer());
  expect(bytes.length).toBe(200 * 100_000);
  expect(bytes.every((byte, at) => byte === Math.floor(at / 100_000))).toBe(true);
});

test('a failed stream is cut, so that clients do not take it for complete', async () => {
  const rest = await start();
  const response = await open(rest, 'breaks');
  expect(response.status).toBe(200);
  await expect(response.text()).rejects.toThrow();
  expect(rest.logs.lines).toContainEqual(
    expect.objectContaining({ message: 'GET /api/v1/plugins/streamer/breaks 500' }),
  );
});

test('a stream without progress for the timeout is cut', async () => {
  const rest = await start();
  const response = await open(rest, 'stalls');
  const reader = response.body!.getReader();
  expect(textOf((await reader.read()).value)).toBe('begun');
  rest.clock.advance(2001);
  await expect(reader.read()).rejects.toThrow();
});

test.each(['odd-type', 'odd-piece'])('%s fails without harm', async (path) => {
  const rest = await start();
  const outcome = await open(rest, path).then(
    async (response) => [response.status, await response.text().catch(() => 'cut')],
    () => 'cut',
  );
  expect(outcome).not.toEqual([200, 'x']);
  expect((await open(rest, 'bytes')).status).toBe(200);
});

test('an invalid source is an ordinary error while the answer can still be one', async () => {
  const rest = await start();
  const response = await open(rest, 'no-source');
  expect([response.status, await response.json()]).toMatchObject([
    500,
    { error: { code: 'EXECUTION_ERROR' } },
  ]);
  expect(rest.logs.lines.map(({ message }) => message)).toContainEqual(
    expect.stringContaining('The source of a stream must be iterable.'),
  );
});

test('a process that sends more than was requested is ended', async () => {
  const rest = await start();
  const response = await open(rest, 'floods');
  await expect(response.text()).rejects.toThrow();
  await expect
    .poll(() => rest.logs.lines.map(({ message }) => String(message)).join('\n'))
    .toContain('sent more of a stream than it was asked for');
  expect((await open(rest, 'bytes')).status).toBe(200);
});

test('a caller without stream support gets an error that says so', async () => {
  const rest = await start();
  await expect(
    createClient({ url: rest.url, peer: 'rest' }).call(
      runCommand,
      { params: { pluginId: 'streamer' as never, commandId: 'streams' }, body: {} },
      { headers: asCaller('operator') },
    ),
  ).rejects.toMatchObject({ code: 'EXECUTION_ERROR', message: expect.stringContaining('routes may stream') });
});
