import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { GatewayServices } from '../../../src/daemons/gateway/services.ts';
import { POLL_MS } from '../../../src/daemons/membership/change-feed.ts';
import { minutes, seconds } from '../../../src/kit/time/duration.ts';
import type { AnyJson } from '../../support/any-json.ts';
import { TEST_KEYS, tempDir } from '../../support/daemon.ts';
import { placeEmptyDatabase } from '../../support/empty-database.ts';
import { ADMIN_TOKEN, startGateway, type TestGateway } from '../../support/gateway.ts';
import { connectRaw, type RawAgent, registerTestHost } from '../../support/host-agent.ts';

const PROJECT = fileURLToPath(new URL('../../fixtures/projects/hosts', import.meta.url));
const ON_HOSTS = { execution: { plugins: { '@acme/tools': { backend: 'host' } } } };

const servicesOf = (node: TestGateway): GatewayServices => node.services as GatewayServices;

/** Starts nodes on one store, whose addresses are known to each other. */
async function nodes(...instances: string[]): Promise<TestGateway[]> {
  const dataDir = await tempDir();
  await placeEmptyDatabase('gateway', dataDir);
  const started: TestGateway[] = [];
  for (const instance of instances) {
    const env = { SVC_INSTANCE: instance };
    const node = await startGateway({
      projectDir: PROJECT,
      config: ON_HOSTS,
      dataDir,
      sharesStore: true,
      env,
    });
    started.push(node);
  }
  const live = async () =>
    (await servicesOf(started[0]!).store.members.live('gateway')).map(({ url }) => url);
  await expect.poll(live).toEqual(started.map(({ url }) => url));
  return started;
}

interface Dispatched {
  status: number;
  headers: Headers;
  body: AnyJson;
}

async function dispatch(
  node: TestGateway,
  executionId: string,
  {
    signal,
    headers,
    ...extra
  }: { signal?: AbortSignal; headers?: Record<string, string>; [field: string]: unknown } = {},
): Promise<Dispatched> {
  const response = await fetch(`${node.url}/internal/dispatch`, {
    method: 'POST',
    headers: {
      'x-internal-secret': TEST_KEYS.internalSecret,
      'content-type': 'application/json',
      ...headers,
    },
    body: JSON.stringify({
      executionId,
      plugin: { id: '@acme/tools' },
      handler: 'handlers.js#echo',
      input: 1,
      ...extra,
    }),
    ...(signal ? { signal } : {}),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}

async function connected(node: TestGateway, labels: Record<string, string> = {}) {
  const host = await registerTestHost(node, ADMIN_TOKEN, { labels });
  const agent = connectRaw(node, await host.token(), host);
  await agent.hello();
  return { host, agent };
}

/** Answers the next execution with the name of the agent. */
async function answerNext(agent: RawAgent, from: string): Promise<void> {
  const { executionId } = await agent.next('execute');
  agent.send({ type: 'result', executionId, result: { exitCode: 0, result: { from } } });
}

test('a dispatch at one gateway reaches a host that is connected to another, by id, labels or any', async () => {
  const [a, b] = (await nodes('a', 'b')) as [TestGateway, TestGateway];
  const { host, agent } = await connected(b, { zone: 'eu' });
  const targets = [{}, { target: { hostId: host.hostId } }, { target: { labels: { zone: 'eu' } } }];
  for (const [n, target] of targets.entries()) {
    const answer = dispatch(a, `e${n}`, target);
    await answerNext(agent, 'b');
    expect(await answer).toMatchObject({
      status: 200,
      body: { executionId: `e${n}`, result: { result: { from: 'b' } } },
    });
  }
  const missing = await dispatch(a, 'missing', { target: { labels: { zone: 'us' } } });
  expect([missing.status, missing.body.error.code]).toEqual([503, 'HOST_UNAVAILABLE']);
  // The tenant decides first.
  const foreign = await dispatch(a, 'foreign', { tenantId: 'other' });
  expect(foreign.body.error.code).toBe('HOST_UNAVAILABLE');
});

test('a host of a gateway that is stopping is used only if no other host matches', async () => {
  const [a, b, c] = (await nodes('a', 'b', 'c')) as [TestGateway, TestGateway, TestGateway];
  const stopping = await connected(b, { zone: 'eu' });
  const serving = await connected(c);
  b.becomeUnready();
  const draining = async () =>
    (await servicesOf(a).store.members.live('gateway')).filter(({ isDraining }) => isDraining);
  await expect.poll(draining).toMatchObject([{ instance: 'b', url: b.url }]);
  for (const id of ['e1', 'e2']) {
    const answer = dispatch(a, id);
    await answerNext(serving.agent, 'c');
    expect((await answer).body.result.result).toEqual({ from: 'c' });
  }
  const only = dispatch(a, 'e3', { target: { labels: { zone: 'eu' } } });
  await answerNext(stopping.agent, 'b');
  expect((await only).body.result.result).toEqual({ from: 'b' });
});

test('a host of the same gateway goes first', async () => {
  const [a, b] = (await nodes('a', 'b')) as [TestGateway, TestGateway];
  const there = await connected(b);
  const here = await connected(a);
  for (const id of ['e1', 'e2']) {
    const answer = dispatch(a, id);
    await answerNext(here.agent, 'a');
    expect((await answer).body.result.result).toEqual({ from: 'a' });
  }
  expect(there.agent.frames.filter(({ type }) => type === 'execute')).toEqual([]);
});

test('streams, errors and cancellations pass between gateways', async () => {
  const [a, b] = (await nodes('a', 'b')) as [TestGateway, TestGateway];
  const { agent } = await connected(b);
  const streamed = dispatch(a, 'streamed', { streams: true });
  await agent.next('execute');
  agent.send({ type: 'stream', executionId: 'streamed', contentType: 'text/plain' });
  for (const piece of ['one ', 'two'])
    agent.send({ type: 'chunk', executionId: 'streamed', data: Buffer.from(piece).toString('base64') });
  agent.send({ type: 'result', executionId: 'streamed', result: { exitCode: 0 } });
  const { headers, body } = await streamed;
  expect([headers.get('content-type'), headers.get('x-svc-stream'), body]).toEqual([
    'text/plain',
    'streamed',
    'one two',
  ]);

  const failed = dispatch(a, 'failed');
  await agent.next('execute');
  agent.send({
    type: 'error',
    executionId: 'failed',
    error: { code: 'VALIDATION_ERROR', message: 'too old' },
  });
  expect(await failed).toMatchObject({ status: 400, body: { error: { code: 'VALIDATION_ERROR' } } });

  const leaving = new AbortController();
  const left = dispatch(a, 'left', { signal: leaving.signal });
  await agent.next('execute');
  leaving.abort();
  await expect(left).rejects.toThrow();
  expect(await agent.next('cancel')).toMatchObject({ executionId: 'left' });
});

test('a call that was passed on is not passed on again, even if the store names another owner', async () => {
  const [a, b, c] = (await nodes('a', 'b', 'c')) as [TestGateway, TestGateway, TestGateway];
  const { host, agent } = await connected(b);
  const { store, membership } = servicesOf(c);
  await store.hosts.connect(host.hostId, 'session-elsewhere', 1, membership.fence);
  const refused = await dispatch(a, 'e1');
  expect([refused.status, refused.body.error.code]).toEqual([503, 'HOST_UNAVAILABLE']);
  expect(agent.frames.filter(({ type }) => type === 'execute')).toEqual([]);
});

test('an owner that has ended is not called, and one that cannot be reached answers HOST_UNAVAILABLE', async () => {
  const [a, b] = (await nodes('a', 'b')) as [TestGateway, TestGateway];
  const { host } = await connected(b);
  const { store } = servicesOf(a);
  const gone = { kind: 'gateway', instance: 'gone', version: '1', release: null, keys: null } as const;
  const fence = await store.members.join({ ...gone, leaseMs: minutes(1), isSole: false });
  await store.members.renew(fence, { leaseMs: minutes(1), url: 'http://127.0.0.1:9' });
  await store.hosts.connect(host.hostId, 'session', 1, fence);
  const unreachable = await dispatch(a, 'e1');
  expect(unreachable).toMatchObject({ status: 503, body: { error: { code: 'HOST_UNAVAILABLE' } } });
  expect(unreachable.body.error.message).toContain('cannot be reached');
  await store.members.leave(fence);
  const ended = await dispatch(a, 'e2');
  expect(ended.body.error.message).toContain('is connected, and the plugin');
});

test('a host that connects to another gateway loses its former connection', async () => {
  const [a, b] = (await nodes('a', 'b')) as [TestGateway, TestGateway];
  const { host, agent } = await connected(a);
  const other = await connected(a);
  const next = connectRaw(b, await host.token(), host);
  await next.hello();
  a.clock.advance(POLL_MS);
  expect(await agent.closed).toMatchObject({ code: 4409 });
  const answer = dispatch(a, 'e1', { target: { hostId: host.hostId } });
  await answerNext(next, 'b');
  expect((await answer).body.result.result).toEqual({ from: 'b' });
  expect(other.agent.socket.readyState).toBe(other.agent.socket.OPEN);
});

test('a session that was replaced unnoticed ends at a heartbeat', async () => {
  const [a] = (await nodes('a')) as [TestGateway];
  const { host, agent } = await connected(a);
  const { store, membership } = servicesOf(a);
  await store.hosts.connect(host.hostId, 'another', 1, membership.fence);
  for (const _ of [1, 2]) {
    // The session is silent after three missed heartbeats.
    a.clock.advance(seconds(31));
    agent.send({ type: 'heartbeat', at: 1 });
    await agent.next('ack');
  }
  expect(await agent.closed).toMatchObject({ code: 4409 });
});
