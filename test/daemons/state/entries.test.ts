import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  deleteState,
  getState,
  incrementState,
  LIMITS,
  listState,
  putState,
} from '../../../src/contracts/index.ts';
import { state } from '../../../src/daemons/state/index.ts';
import { serviceHeaders } from '../../../src/http/index.ts';
import { minutes } from '../../../src/kit/time/duration.ts';
import { acquireOwnerLock } from '../../../src/store/sqlite/index.ts';
import { startTestDaemon, TEST_KEYS, tempDir } from '../../support/daemon.ts';

const at = (key: string, namespace = 'github') => ({ params: { namespace, key } });

test('an entry is written, read, replaced and deleted', async () => {
  const daemon = await startTestDaemon(state);
  const value = { open: 3, labels: ['bug', 'ünïcode \u{1F600}'], none: null };
  expect(await daemon.call(putState, { ...at('issues/octo/repo'), body: { value } })).toEqual({
    written: true,
  });
  expect(await daemon.call(getState, at('issues/octo/repo'))).toEqual({
    key: 'issues/octo/repo',
    value,
    expiresAt: null,
  });
  await daemon.call(putState, { ...at('issues/octo/repo'), body: { value: 4 } });
  expect((await daemon.call(getState, at('issues/octo/repo'))).value).toBe(4);
  expect(await daemon.call(deleteState, at('issues/octo/repo'))).toEqual({ deleted: true });
  expect(await daemon.call(deleteState, at('issues/octo/repo'))).toEqual({ deleted: false });
  await expect(daemon.call(getState, at('issues/octo/repo'))).rejects.toMatchObject({
    code: 'NOT_FOUND',
    status: 404,
  });
});

test('a value is stored exactly, whatever its property names', async () => {
  const daemon = await startTestDaemon(state);
  const value = '{"__proto__":{"a":1},"constructor":[null,1e+300,"\\u0000"],"":{}}';
  const headers = { ...serviceHeaders(TEST_KEYS.internalSecret, {}), 'content-type': 'application/json' };
  await daemon.fetch('/api/v1/state/a/__proto__', { method: 'PUT', headers, body: `{"value":${value}}` });
  expect(await (await daemon.fetch('/api/v1/state/a/__proto__', { headers })).text()).toContain(
    `"value":${value}`,
  );
});

test('entries survive a daemon restart, and one daemon at a time owns their file', async () => {
  const first = await startTestDaemon(state);
  await first.call(putState, { ...at('k'), body: { value: 1 } });
  const ownership = { file: join(first.dataDir, 'state.db'), label: 'second', waitMs: 0 };
  await expect(acquireOwnerLock(ownership)).rejects.toThrow(`is in use by state (pid ${process.pid})`);
  await first.close();
  const second = await startTestDaemon(state, { dataDir: first.dataDir });
  expect((await second.call(getState, at('k'))).value).toBe(1);
  await second.close();
  (await acquireOwnerLock(ownership)).release();
});

test('a failed start releases the file for the next one', async () => {
  const dataDir = await tempDir();
  await writeFile(join(dataDir, 'state.db'), 'no database at all, '.repeat(500));
  await expect(startTestDaemon(state, { dataDir })).rejects.toMatchObject({ code: 'STORE_ERROR' });
  await rm(join(dataDir, 'state.db'));
  const daemon = await startTestDaemon(state, { dataDir });
  expect(await daemon.call(listState, { params: { namespace: 'a' } })).toEqual({
    items: [],
    nextCursor: null,
  });
});

test('tenants and namespaces do not see each other', async () => {
  const daemon = await startTestDaemon(state);
  await daemon.call(putState, { ...at('k', 'a'), body: { value: 'mine' } }, 'acme');
  for (const [namespace, tenant] of [
    ['a', 'other'],
    ['b', 'acme'],
    ['acme","a', 'acme'],
  ] as const) {
    await expect(daemon.call(getState, at('k', namespace), tenant)).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    expect((await daemon.call(listState, { params: { namespace } }, tenant)).items).toEqual([]);
    expect(await daemon.call(deleteState, at('k', namespace), tenant)).toEqual({ deleted: false });
  }
  expect((await daemon.call(getState, at('k', 'a'), 'acme')).value).toBe('mine');
});

test('an entry with a TTL is gone when it expires', async () => {
  const daemon = await startTestDaemon(state);
  await daemon.call(putState, { ...at('k'), body: { value: 1, ttlMs: 1000 } });
  const expiresAt = daemon.clock.now() + 1000;
  expect(await daemon.call(getState, at('k'))).toMatchObject({ expiresAt });
  daemon.clock.advance(1000);
  await expect(daemon.call(getState, at('k'))).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

test('of racing writers with ifAbsent exactly one writes', async () => {
  const daemon = await startTestDaemon(state);
  const put = (value: number) => daemon.call(putState, { ...at('lock'), body: { value, ifAbsent: true } });
  const results = await Promise.all(Array.from({ length: 20 }, (_, i) => put(i)));
  const winner = results.findIndex(({ written }) => written);
  expect(results.filter(({ written }) => written)).toHaveLength(1);
  expect((await daemon.call(getState, at('lock'))).value).toBe(winner);
});

test('counters count calls of all callers within their window', async () => {
  const daemon = await startTestDaemon(state);
  const hit = () => daemon.call(incrementState, { ...at('hits'), body: { windowMs: minutes(1) } });
  const resetsAt = daemon.clock.now() + minutes(1);
  const hits = await Promise.all(Array.from({ length: 20 }, hit));
  expect(hits.map(({ value }) => value).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 20 }, (_, i) => i + 1),
  );
  expect(hits.every((reply) => reply.resetsAt === resetsAt)).toBe(true);
  daemon.clock.advance(minutes(1));
  expect((await hit()).value).toBe(1);

  expect(await daemon.call(incrementState, { ...at('total'), body: { by: -5 } })).toEqual({
    value: -5,
    resetsAt: null,
  });
  await daemon.call(putState, { ...at('text'), body: { value: 'five' } });
  await expect(daemon.call(incrementState, { ...at('text'), body: {} })).rejects.toMatchObject({
    code: 'CONFLICT',
    status: 409,
  });
});

test('lists by prefix, in order, page by page', async () => {
  const daemon = await startTestDaemon(state);
  const keys = ['a', 'b/%', 'b/_', 'b/é', 'b/\u{1F600}', 'c'];
  for (const key of keys) await daemon.call(putState, { ...at(key), body: { value: key } });
  const list = (query: object) => daemon.call(listState, { params: { namespace: 'github' }, query });
  const first = await list({ prefix: 'b/', limit: 3 });
  expect(first.items.map(({ key }) => key)).toEqual(['b/%', 'b/_', 'b/é']);
  const second = await list({ prefix: 'b/', limit: 3, cursor: first.nextCursor });
  expect(second).toMatchObject({ items: [{ key: 'b/\u{1F600}' }], nextCursor: null });
  expect(await list({ limit: 6 })).toMatchObject({ items: keys.map((key) => ({ key })), nextCursor: null });
  expect((await list({ limit: 5 })).nextCursor).toBe('b/\u{1F600}');
});

test('a page of large values ends early and continues after its cursor', async () => {
  const daemon = await startTestDaemon(state);
  const value = 'x'.repeat(200_000);
  const keys = Array.from({ length: 80 }, (_, i) => `k${String(i).padStart(2, '0')}`);
  await Promise.all(keys.map((key) => daemon.call(putState, { ...at(key), body: { value } })));
  const seen: string[] = [];
  let cursor: string | undefined;
  let pages = 0;
  do {
    const page = await daemon.call(listState, {
      params: { namespace: 'github' },
      query: { limit: 1000, cursor },
    });
    seen.push(...page.items.map(({ key }) => key));
    cursor = page.nextCursor ?? undefined;
    pages++;
  } while (cursor !== undefined);
  expect(seen).toEqual(keys);
  expect(pages).toBeGreaterThan(1);
});

test('a value may take 256 KiB of JSON and no byte more', async () => {
  const daemon = await startTestDaemon(state);
  const longest = LIMITS.stateValueBytes - 2;
  const put = (value: string) => daemon.call(putState, { ...at('k'), body: { value } });
  expect(await put('x'.repeat(longest))).toEqual({ written: true });
  // Each of these is escaped to six bytes on its way.
  await expect(put('\u0001'.repeat(longest))).rejects.toMatchObject({
    code: 'PAYLOAD_TOO_LARGE',
    status: 413,
  });
  await expect(put('x'.repeat(longest + 1))).rejects.toMatchObject({
    code: 'PAYLOAD_TOO_LARGE',
    status: 413,
  });
  await expect(put('é'.repeat(longest / 2 + 1))).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
  await expect(put('x'.repeat(3_000_000))).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
  expect(((await daemon.call(getState, at('k'))).value as string).length).toBe(longest);
});

test('an invalid entry is refused with the path of each fault', async () => {
  const daemon = await startTestDaemon(state);
  const send = async (method: string, path: string, body: unknown) => {
    const headers = { ...serviceHeaders(TEST_KEYS.internalSecret, {}), 'content-type': 'application/json' };
    const response = await daemon.fetch(path, { method, headers, body: JSON.stringify(body) });
    return {
      status: response.status,
      body: (await response.json()) as { error: { code: string; details: object } },
    };
  };
  const put = (body: unknown) => send('PUT', '/api/v1/state/github/k', body);
  expect(await put({})).toMatchObject({ status: 400, body: { error: { code: 'VALIDATION_ERROR' } } });
  expect((await put({ value: 1, ttlMs: 0, ttl: 5 })).body.error.details).toMatchObject({
    issues: [{ path: 'body.ttlMs' }, { path: 'body.ttl' }],
  });
  expect((await put({ value: 1, ttlMs: 1.5 })).status).toBe(400);
  expect((await send('POST', '/api/v1/state/github/k/increment', { by: 1.5 })).status).toBe(400);
  expect((await send('PUT', '/api/v1/state/github/nul%00', { value: 1 })).status).toBe(400);
  expect((await send('PUT', `/api/v1/state/github/${'k'.repeat(513)}`, { value: 1 })).status).toBe(400);
  const headers = serviceHeaders(TEST_KEYS.internalSecret, {});
  expect((await daemon.fetch('/api/v1/state/github?limit=1001', { headers })).status).toBe(400);
  expect((await daemon.fetch('/api/v1/state/github', { headers })).status).toBe(200);
});

test('has the standard routes, and accepts only daemons when authentication is required', async () => {
  const daemon = await startTestDaemon(state, { config: { auth: { mode: 'required' } } });
  for (const path of ['/health', '/api/v1/health']) {
    expect(await (await daemon.fetch(path)).json()).toMatchObject({ status: 'ok', service: 'state' });
  }
  expect(await (await daemon.fetch('/metrics')).text()).toContain('svc_http_requests_total{service="state"');
  const { paths } = (await (await daemon.fetch('/openapi.json')).json()) as { paths: object };
  expect(Object.keys(paths)).toContain('/api/v1/state/{namespace}/{key}/increment');
  expect((await daemon.fetch('/api/v1/state/github/k')).status).toBe(401);
  await expect(daemon.call(getState, at('k'))).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

test('every call without the service key is refused, in development too', async () => {
  const daemon = await startTestDaemon(state, { config: { auth: { mode: 'optional' } } });
  await daemon.call(putState, { ...at('k'), body: { value: 'of a tenant' } });
  for (const [method, path] of [
    ['GET', '/api/v1/state/github/k'],
    ['GET', '/api/v1/state/github'],
    ['PUT', '/api/v1/state/github/k'],
    ['DELETE', '/api/v1/state/github/k'],
    ['POST', '/api/v1/state/github/k/increment'],
  ]) {
    const headers = { 'content-type': 'application/json', 'x-tenant-id': 'default' };
    const body = method === 'PUT' ? '{"value":1}' : method === 'POST' ? '{}' : undefined;
    const response = await daemon.fetch(path!, { method: method!, headers, ...(body ? { body } : {}) });
    expect([method, path, response.status]).toEqual([method, path, 401]);
  }
  expect((await daemon.fetch('/health')).status).toBe(200);
  expect((await daemon.call(getState, at('k'))).value).toBe('of a tenant');
});
