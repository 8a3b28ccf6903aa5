import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { type CommandResult, getHost, HOST_CLOSE, revokeHost } from '../../../src/contracts/index.ts';
import { answerChallenge, createHostKeys } from '../../../src/kit/security/host-proof.ts';
import { hours, minutes, seconds } from '../../../src/kit/time/duration.ts';
import { TEST_KEYS } from '../../support/daemon.ts';
import { ADMIN_TOKEN, startGateway, type TestGateway } from '../../support/gateway.ts';
import { connectHost, connectRaw, refusedWith, registerTestHost } from '../../support/host-agent.ts';
import { exchangeBytes } from './support/raw-http.ts';
import { signJwt } from './support/start-gateway.ts';

const PROJECT = fileURLToPath(new URL('../../fixtures/projects/hosts', import.meta.url));
const ON_HOSTS = { execution: { plugins: { '@acme/tools': { backend: 'host' } } } };

const start = (options: Parameters<typeof startGateway>[0] = {}) =>
  startGateway({ projectDir: PROJECT, config: ON_HOSTS, ...options });

/** Runs a command of the fixture plugin as another daemon would. */
async function dispatch(gateway: TestGateway, body: Record<string, unknown> = {}) {
  const response = await fetch(`${gateway.url}/internal/dispatch`, {
    method: 'POST',
    headers: { 'x-internal-secret': TEST_KEYS.internalSecret, 'content-type': 'application/json' },
    body: JSON.stringify({ plugin: { id: '@acme/tools' }, handler: 'handlers.js#echo', ...body }),
  });
  const retryAfter = response.headers.get('retry-after');
  return { status: response.status, retryAfter, body: (await response.json()) as DispatchReply };
}

interface DispatchReply {
  executionId: string;
  result: CommandResult;
  error: { code: string };
}

const eventsOf = (gateway: TestGateway, event: string) =>
  gateway.logs.lines.filter((line) => line.event === event);

describe('letting a host in', () => {
  test.each([
    ['no token', '', 401],
    ['a token of nobody', 'made-up', 401],
  ])('%s: the upgrade is refused like an ordinary request', async (_name, token, status) => {
    const gateway = await start();
    expect(await refusedWith(connectRaw(gateway, token))).toBe(status);
  });

  test('a plain request is authenticated, then answered with 426', async () => {
    const gateway = await start();
    const plain = (headers: Record<string, string>) => gateway.fetch('/hosts/connect', { headers });
    expect((await plain({})).status).toBe(401);
    const told = await plain({ authorization: `Bearer ${ADMIN_TOKEN}` });
    expect([told.status, told.headers.get('upgrade')]).toEqual([426, 'websocket']);
    expect(await told.json()).toMatchObject({ error: { code: 'UPGRADE_REQUIRED' } });
  });

  test.each([
    ['a key that is none', { key: 'x' }],
    ['a subprotocol that is none', { protocol: ',' }],
  ])('a handshake with %s is refused in the shape of every error', async (_name, broken) => {
    const gateway = await start();
    const {
      version = '13',
      key = 'dGhlIHNhbXBsZSBub25jZQ==',
      protocol = 'a',
    }: Record<string, string> = broken;
    const answer = await exchangeBytes(
      gateway,
      `GET /hosts/connect HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${ADMIN_TOKEN}\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: ${version}\r\nsec-websocket-key: ${key}\r\nsec-websocket-protocol: ${protocol}\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 .*x-request-id: .*"code":"VALIDATION_ERROR"/s);
  });

  test('a HEAD is answered like a plain request', async () => {
    const gateway = await start();
    expect((await gateway.fetch('/hosts/connect', { method: 'HEAD' })).status).toBe(401);
    expect((await gateway.fetch('/openapi-merged.json', { method: 'HEAD' })).status).toBe(200);
  });

  test('a container token connects no host', async () => {
    const gateway = await start();
    const token = await signJwt({ hostId: 'container:e1', typ: 'container', executionId: 'e1' });
    expect(await refusedWith(connectRaw(gateway, token))).toBe(403);
  });

  test('a hello with proof of the registered key is welcomed, and the host is online until its socket closes', async () => {
    const gateway = await start();
    const host = await registerTestHost(gateway, ADMIN_TOKEN);
    const params = { hostId: host.hostId };
    const agent = connectRaw(gateway, await host.token(), host);
    const welcome = await agent.hello();
    expect(welcome).toMatchObject({ hostId: host.hostId, heartbeatMs: 15_000 });
    expect(welcome.services.state).toContain('increment');
    expect(await gateway.call(getHost, { params })).toMatchObject({
      status: 'online',
      sessionId: welcome.sessionId,
    });
    agent.socket.close();
    await agent.closed;
    await expect.poll(async () => (await gateway.call(getHost, { params })).status).toBe('offline');
  });

  test.each([
    ['another key', 'other-key'],
    ['no proof', 'none'],
    ['a proof of an earlier connection, replayed', 'replayed'],
  ])('a stolen token with %s is closed with 4401', async (_name, how) => {
    const gateway = await start();
    const host = await registerTestHost(gateway, ADMIN_TOKEN);
    const token = await host.token();
    let extra: Record<string, unknown> = {};
    if (how === 'replayed') {
      const first = connectRaw(gateway, token, host);
      const { nonce, publicKey } = await first.next('challenge');
      extra = { proof: answerChallenge({ nonce, publicKey }, host.keys, host.hostId) };
    }
    const thief = { ...host, keys: createHostKeys() };
    const agent = connectRaw(gateway, token, how === 'other-key' ? thief : undefined);
    agent.hello(extra).catch(() => {});
    expect((await agent.closed).code).toBe(HOST_CLOSE.unauthenticated);
    expect(eventsOf(gateway, 'host.refused')).toHaveLength(1);
  });

  test('no hello within 5 s: 4408; a token of no host: 4403; another protocol: 1008; work before hello: 1008', async () => {
    const gateway = await start();
    const host = await registerTestHost(gateway, ADMIN_TOKEN);
    const mute = connectRaw(gateway, await host.token(), host);
    await mute.next('challenge');
    gateway.clock.advance(seconds(5));
    expect((await mute.closed).code).toBe(HOST_CLOSE.silent);

    const nobody = connectRaw(gateway, ADMIN_TOKEN);
    nobody.hello().catch(() => {});
    expect((await nobody.closed).code).toBe(HOST_CLOSE.revoked);

    const future = connectRaw(gateway, await host.token(), host);
    future.hello({ protocol: 99 }).catch(() => {});
    expect((await future.closed).code).toBe(HOST_CLOSE.protocol);

    const early = connectRaw(gateway, await host.token(), host);
    await early.next('challenge');
    early.send({ type: 'heartbeat', at: 1 });
    expect((await early.closed).code).toBe(HOST_CLOSE.protocol);
  });
});

describe('an open socket', () => {
  test('beats are acknowledged; three missed beats close the socket with 4408', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    gateway.clock.advance(seconds(44));
    agent.send({ type: 'heartbeat', at: 7 });
    expect(await agent.next('ack')).toMatchObject({ at: 7 });
    gateway.clock.advance(seconds(44));
    expect(agent.socket.readyState).toBe(WebSocket.OPEN);
    gateway.clock.advance(seconds(2));
    expect((await agent.closed).code).toBe(HOST_CLOSE.silent);
  });

  test('a wall clock set back an hour extends neither the beat timeout nor the hello timeout', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    const host = await registerTestHost(gateway, ADMIN_TOKEN, { name: 'mute' });
    const mute = connectRaw(gateway, await host.token(), host);
    await mute.next('challenge');
    gateway.clock.jump(gateway.clock.now() - hours(1));
    gateway.clock.advance(seconds(5));
    expect((await mute.closed).code).toBe(HOST_CLOSE.silent);
    expect(agent.socket.readyState).toBe(WebSocket.OPEN);
    gateway.clock.advance(seconds(40));
    expect((await agent.closed).code).toBe(HOST_CLOSE.silent);
  });

  test('its token is renewed in place; without renewal, expiry closes the socket with 4401', async () => {
    const gateway = await start();
    const { host, agent } = await connectHost(gateway, ADMIN_TOKEN);
    const beatFor = async (ms: number) => {
      for (let left = ms; left > 0; left -= seconds(30)) {
        gateway.clock.advance(Math.min(left, seconds(30)));
        agent.send({ type: 'heartbeat', at: left });
        if (agent.socket.readyState !== WebSocket.OPEN) return;
        await agent.next('ack').catch(() => {});
      }
    };
    await beatFor(minutes(55));
    agent.send({ type: 'auth', accessToken: await host.token() });
    await agent.next('renewed');
    await beatFor(minutes(30));
    expect(agent.socket.readyState).toBe(WebSocket.OPEN);
    await beatFor(minutes(31));
    expect((await agent.closed).code).toBe(HOST_CLOSE.unauthenticated);
    expect(gateway.clock.now()).toBeLessThan(Date.UTC(2030, 0, 1) + hours(2));
  });

  test('a token of another host or an invalid one does not renew it', async () => {
    const gateway = await start();
    const one = await connectHost(gateway, ADMIN_TOKEN);
    const two = await connectHost(gateway, ADMIN_TOKEN);
    one.agent.send({ type: 'auth', accessToken: await two.host.token() });
    two.agent.send({ type: 'auth', accessToken: 'made-up' });
    expect((await one.agent.closed).code).toBe(HOST_CLOSE.unauthenticated);
    expect((await two.agent.closed).code).toBe(HOST_CLOSE.unauthenticated);
  });

  test('revoking the host closes the socket with 4403 at once, and the host cannot reconnect', async () => {
    const gateway = await start();
    const { host, agent } = await connectHost(gateway, ADMIN_TOKEN);
    const token = await host.token();
    await gateway.call(revokeHost, { params: { hostId: host.hostId } });
    // The gateway's clock stands still: no beat and no timer can have closed it.
    expect((await agent.closed).code).toBe(HOST_CLOSE.revoked);
    expect(await refusedWith(connectRaw(gateway, token))).toBe(401);
    expect(await gateway.call(getHost, { params: { hostId: host.hostId } })).toMatchObject({
      status: 'revoked',
    });
  });

  test('revoking a host closes its socket with 4403 at once, also before hello', async () => {
    const gateway = await start();
    const host = await registerTestHost(gateway, ADMIN_TOKEN);
    const agent = connectRaw(gateway, await host.token(), host);
    await agent.next('challenge');
    await gateway.call(revokeHost, { params: { hostId: host.hostId } });
    expect((await agent.closed).code).toBe(HOST_CLOSE.revoked);
    expect(eventsOf(gateway, 'host.refused')).toMatchObject([{ reasonCode: '4403' }]);
  });

  test('a token that expires before hello closes its socket with 4401', async () => {
    const gateway = await start();
    const host = await registerTestHost(gateway, ADMIN_TOKEN);
    const { hostId, namespaceId } = host;
    const token = await signJwt({ hostId, namespaceId }, { clock: gateway.clock, expiresIn: -4 });
    const agent = connectRaw(gateway, token, host);
    await agent.next('challenge');
    gateway.clock.advance(seconds(1));
    expect((await agent.closed).code).toBe(HOST_CLOSE.unauthenticated);
  });

  test('a newer connection replaces the older (4409), and the late close of the older does not unregister the host', async () => {
    const gateway = await start();
    const { host, agent: older } = await connectHost(gateway, ADMIN_TOKEN);
    const newer = connectRaw(gateway, await host.token(), host);
    const { sessionId } = await newer.hello();
    expect((await older.closed).code).toBe(HOST_CLOSE.replaced);
    await sleep(50);
    expect(await gateway.call(getHost, { params: { hostId: host.hostId } })).toMatchObject({
      status: 'online',
      sessionId,
    });
    const answer = dispatch(gateway, { input: 1 });
    const { executionId } = await newer.next('execute');
    newer.send({ type: 'result', executionId, result: { exitCode: 0, result: 2 } });
    expect((await answer).body.result.result).toBe(2);
  });

  test.each([
    ['text that is no JSON', '{oops', HOST_CLOSE.malformed],
    ['a frame without a type', '[]', HOST_CLOSE.malformed],
    ['a known frame of the wrong shape', '{"type":"heartbeat","at":"now"}', HOST_CLOSE.malformed],
    ['nesting beyond all measure', `${'['.repeat(5000)}${']'.repeat(5000)}`, HOST_CLOSE.malformed],
    [
      'more than a megabyte',
      JSON.stringify({ type: 'log', message: 'x'.repeat(1024 * 1024) }),
      HOST_CLOSE.tooLarge,
    ],
  ])('%s closes it', async (_name, text, code) => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    agent.send(text);
    expect((await agent.closed).code).toBe(code);
  });

  test('binary frames close the socket with 1003', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    agent.socket.send(Buffer.from('{}'));
    expect((await agent.closed).code).toBe(HOST_CLOSE.binary);
  });

  test('frames of unknown types are ignored with one diagnostic', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    for (let i = 0; i < 3; i++) agent.send({ type: 'from-the-future', i });
    agent.send({ type: 'heartbeat', at: 1 });
    await agent.next('ack');
    expect(eventsOf(gateway, 'host.unknown_frame')).toHaveLength(1);
  });

  test('a flooding agent is throttled, and the gateway answers other clients meanwhile', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    let sent = 0;
    const flood = (): void => {
      for (let i = 0; i < 5000; i++) agent.send({ type: 'heartbeat', at: sent++ });
    };
    const acknowledged = () => agent.frames.filter(({ type }) => type === 'ack').length;
    const begunAt = performance.now();
    flood();
    flood();
    // The flood goes on until others are answered: a gateway that took it whole would never get to them.
    agent.socket.on('message', () => {
      if (!isAnswered && acknowledged() > sent - 2500) flood();
    });
    let isAnswered = false;
    expect((await gateway.fetch('/health')).status).toBe(200);
    isAnswered = true;
    await expect.poll(acknowledged, { timeout: 60_000, interval: 200 }).toBe(sent);
    // 4,000 at once and 1,000 a second; some more may have been read before the socket was paused.
    const atOneEachMs = sent - 4000;
    expect(performance.now() - begunAt).toBeGreaterThan(atOneEachMs / 3);
  }, 90_000);

  test('a stopping gateway closes its agents with 1001', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    await gateway.close();
    expect((await agent.closed).code).toBe(HOST_CLOSE.goingAway);
  });

  test('hosts left online by a killed gateway are offline at its next start', async () => {
    const gateway = await start();
    const { host } = await connectHost(gateway, ADMIN_TOKEN);
    await gateway.close();
    // As if it had been killed: what a close notes is taken back.
    const database = new Database(join(gateway.dataDir, 'svc.db'));
    database.prepare('update host set session_id = ?').run('session_of_old');
    database.close();
    const again = await start({ dataDir: gateway.dataDir });
    expect(await again.call(getHost, { params: { hostId: host.hostId } })).toMatchObject({
      status: 'offline',
      sessionId: null,
    });
  });
});

describe('executions', () => {
  test('run on a connected host of the namespace and return its result', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    const answer = dispatch(gateway, { executionId: 'e-1', input: { a: 1 } });
    const { executionId, request } = await agent.next('execute');
    expect(executionId).toBe('e-1');
    expect(request).toMatchObject({ handler: 'handlers.js#echo', input: { a: 1 }, tenantId: 'default' });
    expect(request.plugin).toEqual({
      id: '@acme/tools',
      version: '1.2.0',
      integrity: expect.stringMatching(/^sha512-/),
    });
    expect(JSON.stringify(request)).not.toContain(PROJECT);
    agent.send({ type: 'result', executionId, result: { exitCode: 0, result: 'there' } });
    expect(await answer).toEqual({
      status: 200,
      retryAfter: null,
      body: { executionId: 'e-1', result: { exitCode: 0, result: 'there' } },
    });
  });

  test('without a host 503 HOST_UNAVAILABLE; a host of another namespace does not count', async () => {
    const gateway = await start();
    await connectHost(gateway, ADMIN_TOKEN, { namespaceId: 'other' });
    const { status, retryAfter, body } = await dispatch(gateway);
    expect([status, body.error.code, retryAfter]).toEqual([503, 'HOST_UNAVAILABLE', '5']);
  });

  test('the target narrows by host, label and capability; the least busy matching host runs it', async () => {
    const gateway = await start();
    const eu = await connectHost(gateway, ADMIN_TOKEN, { labels: { zone: 'eu' }, capabilities: ['gpu'] });
    const us = await connectHost(gateway, ADMIN_TOKEN, { labels: { zone: 'us' } });
    const calls = [
      dispatch(gateway, { target: { labels: { zone: 'us' } } }),
      dispatch(gateway, { target: { capability: 'gpu' } }),
      dispatch(gateway, { target: { hostId: us.host.hostId } }),
    ];
    const atUs = [await us.agent.next('execute'), await us.agent.next('execute')];
    const atEu = await eu.agent.next('execute');
    // One runs in the EU, two in the US.
    calls.push(dispatch(gateway));
    const fourth = await eu.agent.next('execute');
    for (const { executionId } of atUs)
      us.agent.send({ type: 'result', executionId, result: { exitCode: 0 } });
    for (const { executionId } of [atEu, fourth])
      eu.agent.send({ type: 'result', executionId, result: { exitCode: 0 } });
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const none = await dispatch(gateway, { target: { labels: { zone: 'mars' } } });
    expect([none.status, none.body.error.code]).toEqual([503, 'HOST_UNAVAILABLE']);
  });

  test('the host in the config is the only candidate, and a call may not name another', async () => {
    const first = await start();
    const { host } = await connectHost(first, ADMIN_TOKEN);
    await first.close();
    const config = { execution: { plugins: { '@acme/tools': { backend: 'host', hostId: host.hostId } } } };
    const gateway = await start({ dataDir: first.dataDir, config, clock: first.clock });
    const other = await connectHost(gateway, ADMIN_TOKEN);
    expect((await dispatch(gateway)).status).toBe(503);
    expect((await dispatch(gateway, { target: { hostId: other.host.hostId } })).status).toBe(503);
    expect(other.agent.frames.some(({ type }) => type === 'execute')).toBe(false);
  });

  test('a lost connection fails its executions at once, and they are not repeated after a reconnect', async () => {
    const gateway = await start();
    const { host, agent } = await connectHost(gateway, ADMIN_TOKEN);
    const answer = dispatch(gateway, { executionId: 'e-lost' });
    await agent.next('execute');
    agent.socket.terminate();
    const { status, body } = await answer;
    expect([status, body.error.code]).toEqual([503, 'HOST_UNAVAILABLE']);
    const again = connectRaw(gateway, await host.token(), host);
    await again.hello();
    again.send({ type: 'result', executionId: 'e-lost', result: { exitCode: 0 } });
    again.send({ type: 'heartbeat', at: 1 });
    await again.next('ack');
    expect(again.frames.some(({ type }) => type === 'execute')).toBe(false);
    expect(eventsOf(gateway, 'host.unknown_execution')).toHaveLength(1);
  });

  test('on timeout the agent gets a cancel and the caller 504; a late result is dropped and logged', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    const answer = dispatch(gateway, { timeoutMs: 1000 });
    const { executionId } = await agent.next('execute');
    gateway.clock.advance(seconds(3));
    expect(await agent.next('cancel')).toMatchObject({ executionId });
    expect((await answer).body.error.code).toBe('EXECUTION_TIMEOUT');
    agent.send({ type: 'result', executionId, result: { exitCode: 0 } });
    agent.send({ type: 'heartbeat', at: 1 });
    await agent.next('ack');
    expect(eventsOf(gateway, 'host.late_result')).toHaveLength(1);
  });

  test('an agent cannot postpone the timeout by repeated progress reports', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    const answer = dispatch(gateway, { timeoutMs: 1000 });
    const { executionId } = await agent.next('execute');
    const say = async (state: string, ms: number) => {
      agent.send({ type: 'progress', executionId, state });
      agent.send({ type: 'heartbeat', at: 1 });
      await agent.next('ack');
      gateway.clock.advance(ms);
    };
    // A minute to fetch the plugin, then the handler's time, each counted once.
    await say('preparing', seconds(30));
    await say('preparing', seconds(25));
    await say('running', seconds(2));
    await say('preparing', 0);
    await say('running', seconds(1));
    expect((await answer).body.error.code).toBe('EXECUTION_TIMEOUT');
  });

  test('a caller that disconnects cancels', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    const leaving = new AbortController();
    const call = fetch(`${gateway.url}/internal/dispatch`, {
      method: 'POST',
      signal: leaving.signal,
      headers: { 'x-internal-secret': TEST_KEYS.internalSecret, 'content-type': 'application/json' },
      body: JSON.stringify({ plugin: { id: '@acme/tools' }, handler: 'handlers.js#echo' }),
    }).catch(() => {});
    const { executionId } = await agent.next('execute');
    leaving.abort();
    await call;
    expect(await agent.next('cancel')).toMatchObject({ executionId });
  });

  test('a revocation during an execution fails it at once', async () => {
    const gateway = await start();
    const { host, agent } = await connectHost(gateway, ADMIN_TOKEN);
    const answer = dispatch(gateway);
    await agent.next('execute');
    await gateway.call(revokeHost, { params: { hostId: host.hostId } });
    expect((await answer).body.error.code).toBe('HOST_UNAVAILABLE');
  });

  test('platform calls use the tenant and plugin of the execution, whatever the agent sends', async () => {
    const gateway = await start();
    const { agent } = await connectHost(gateway, ADMIN_TOKEN);
    const answer = dispatch(gateway);
    const { executionId } = await agent.next('execute');
    const call = (callId: number, service: string, method: string, args: unknown[], id = executionId) =>
      agent.send({ type: 'call', callId, executionId: id, service, method, args });
    call(1, 'invoke', 'run', ['@acme/other/steal', {}]);
    call(2, 'fetch', 'request', [{ url: 'http://127.0.0.1/', method: 'GET', headers: [], body: null }]);
    call(3, 'constructor', 'constructor', []);
    call(4, 'state', 'get', ['x'], 'not-mine');
    const outcomes = new Map<number, string | undefined>();
    for (let i = 0; i < 4; i++) {
      const { callId, outcome } = await agent.next('reply');
      outcomes.set(callId, outcome.ok ? 'ok' : outcome.error.code);
    }
    expect([...outcomes].sort()).toEqual([
      [1, 'PERMISSION_DENIED'],
      [2, 'PERMISSION_DENIED'],
      [3, 'NOT_IMPLEMENTED'],
      [4, 'EXECUTION_ERROR'],
    ]);
    agent.send({ type: 'log', executionId, level: 'info', message: 'from afar' });
    agent.send({
      type: 'error',
      executionId,
      error: { code: 'UNAUTHORIZED', message: 'speaks for the platform' },
    });
    expect((await answer).body.error.code).toBe('EXECUTION_ERROR');
    expect(gateway.logs.lines).toContainEqual(
      expect.objectContaining({ message: 'from afar', pluginId: '@acme/tools', tenantId: 'default' }),
    );
  });
});
