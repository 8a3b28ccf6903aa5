import { readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { writeIdentity } from '../../src/agent/index.ts';
import { getHost, revokeHost } from '../../src/contracts/index.ts';
import { manualClock } from '../../src/kit/time/clock.ts';
import { seconds } from '../../src/kit/time/duration.ts';
import { tempDir } from '../support/daemon.ts';
import { ADMIN_TOKEN, MEMBER_TOKEN } from '../support/gateway.ts';
import { registerTestHost } from '../support/host-agent.ts';
import {
  dispatch,
  identityOf,
  PROJECT,
  spawnAgent,
  startHostGateway,
  startStallingProxy,
  startTestAgent,
} from './support.ts';

test('a handler runs on the host as at the gateway, with config, tenant, state and log lines', async () => {
  const gateway = await startHostGateway();
  await startTestAgent(gateway);
  const about = await dispatch(gateway, 'about', { requestId: 'r-1' });
  expect(about.body.result?.result).toMatchObject({
    version: '1.2.0',
    tenantId: 'default',
    config: { level: 3 },
  });
  expect((await dispatch(gateway, 'tally')).body.result.result).toBe(1);
  expect((await dispatch(gateway, 'tally', { requestId: 'r-2' })).body.result.result).toBe(2);
  await expect
    .poll(() => gateway.logs.lines)
    .toContainEqual(
      expect.objectContaining({ message: 'counted 2', requestId: 'r-2', pluginId: '@acme/tools' }),
    );
});

test.each([
  ['throws', 'fail', {}, 500, 'EXECUTION_ERROR'],
  ['ends its process', 'exit', {}, 500, 'EXECUTION_ERROR'],
  ['never returns', 'spin', { timeoutMs: 300 }, 504, 'EXECUTION_TIMEOUT'],
  ['answers more than may be', 'large', { input: { bytes: 7 * 1024 * 1024 } }, 500, 'EXECUTION_ERROR'],
])('a handler that %s fails only its own call', async (_what, handler, body, status, code) => {
  const gateway = await startHostGateway();
  await startTestAgent(gateway);
  const reply = await dispatch(gateway, handler, body);
  expect([reply.status, reply.body.error?.code]).toEqual([status, code]);
  expect((await dispatch(gateway, 'echo', { input: 1 })).body.result.result).toBe(1);
});

test("the stack of a handler's failure reaches the gateway's log, and no caller", async () => {
  const gateway = await startHostGateway();
  await startTestAgent(gateway);
  const reply = await dispatch(gateway, 'fail', { requestId: 'r-1' });
  const { at } = (reply.body.error as { details?: { at?: string } }).details ?? {};
  expect(at).toMatch(/^handlers\.js:\d+:\d+$/);
  expect(JSON.stringify(reply.body)).not.toContain('    at ');
  await expect
    .poll(() => gateway.logs.lines)
    .toContainEqual(
      expect.objectContaining({
        level: 'error',
        message: expect.stringContaining('"handlers.js#fail" failed: '),
        logsSource: 'plugin',
        pluginId: '@acme/tools',
        requestId: 'r-1',
        meta: expect.objectContaining({ code: 'EXECUTION_ERROR', at, stack: expect.stringContaining(at!) }),
      }),
    );
});

test('an agent runs work only for the namespace it is registered for, whatever the request says', async () => {
  const gateway = await startHostGateway();
  const host = await registerTestHost(gateway, ADMIN_TOKEN);
  await startTestAgent(gateway, { host: { ...host, namespaceId: 'globex' } });
  const { status, body } = await dispatch(gateway, 'about');
  expect([status, body.error]).toMatchObject([
    503,
    {
      code: 'HOST_UNAVAILABLE',
      message: 'The host serves namespace globex only, and received an execution of default.',
    },
  ]);
});

test('a plugin is fetched once by its digest, and again when its content changes', async () => {
  const gateway = await startHostGateway();
  const first = await startTestAgent(gateway);
  const fetched = () =>
    first.logs.lines.filter(({ message }) => String(message).startsWith('Downloaded plugin')).length;
  await dispatch(gateway, 'echo');
  await dispatch(gateway, 'echo');
  expect(fetched()).toBe(1);
  first.agent.stop();
  await first.ended;

  const folder = join(first.home, 'plugins');
  const [name] = await readdir(folder);
  const second = await startTestAgent(gateway, { host: first.host, home: first.home });
  await dispatch(gateway, 'echo');
  expect(second.logs.lines.some(({ message }) => String(message).startsWith('Fetched'))).toBe(false);
  second.agent.stop();
  await second.ended;

  await writeFile(join(folder, name!, 'handlers.js'), 'export const echo = () => "tampered";');
  await startTestAgent(gateway, { host: first.host, home: first.home });
  expect((await dispatch(gateway, 'echo', { input: 'clean' })).body.result.result).toBe('clean');
});

test('only hosts that run a plugin, and administrators, can fetch its files', async () => {
  const gateway = await startHostGateway();
  const host = await registerTestHost(gateway, ADMIN_TOKEN);
  const path = '/api/v1/marketplace/plugins/%40acme%2Ftools/package';
  const status = async (token: string, from = path) =>
    (await gateway.fetch(from, { headers: { authorization: `Bearer ${token}` } })).status;
  expect(await status(await host.token())).toBe(200);
  expect(await status(ADMIN_TOKEN)).toBe(200);
  expect(await status(MEMBER_TOKEN)).toBe(404);
  expect(await status('')).toBe(401);
  const onWorkers = await startHostGateway({ config: { execution: {} } });
  const other = await registerTestHost(onWorkers, ADMIN_TOKEN);
  const reply = await onWorkers.fetch(path, { headers: { authorization: `Bearer ${await other.token()}` } });
  expect(reply.status).toBe(404);
});

test('local folders are used without fetching', async () => {
  const gateway = await startHostGateway();
  const { home } = await startTestAgent(gateway, { pluginFolders: [join(PROJECT, 'plugins/*')] });
  expect((await dispatch(gateway, 'echo', { input: 5 })).body.result.result).toBe(5);
  await expect(stat(join(home, 'plugins'))).rejects.toThrow();
});

test('killing an agent fails its execution at once, and the restarted agent does not repeat it', async () => {
  const gateway = await startHostGateway();
  const host = await registerTestHost(gateway, ADMIN_TOKEN);
  const child = await spawnAgent(gateway, host);
  const answer = dispatch(gateway, 'slow', { input: { ms: 20_000 } });
  await expect.poll(() => gateway.logs.lines.some(({ message }) => message === 'slow begins')).toBe(true);
  child.kill('SIGKILL');
  // The gateway's clock stands still: neither a missing beat nor the handler's time can have told it.
  const { status, body } = await answer;
  expect([status, body.error.code]).toEqual([503, 'HOST_UNAVAILABLE']);
  await startTestAgent(gateway, { host });
  await sleep(500);
  expect(gateway.logs.lines.filter(({ message }) => message === 'slow begins')).toHaveLength(1);
});

test('SIGTERM drains running executions, accepts no new ones, and exits with 0', async () => {
  const gateway = await startHostGateway();
  const host = await registerTestHost(gateway, ADMIN_TOKEN);
  const child = await spawnAgent(gateway, host);
  const exited = new Promise<number | null>((resolve) =>
    child.removeAllListeners('exit').on('exit', resolve),
  );
  const answer = dispatch(gateway, 'slow', { input: { ms: 1500 } });
  await expect.poll(() => gateway.logs.lines.some(({ message }) => message === 'slow begins')).toBe(true);
  child.kill('SIGTERM');
  await sleep(300);
  expect((await dispatch(gateway, 'echo')).body.error.code).toBe('HOST_UNAVAILABLE');
  expect((await answer).body.result.result).toBe('done');
  expect(await exited).toBe(0);
});

test('an agent sends a large result completely before it exits', async () => {
  const gateway = await startHostGateway();
  const proxy = await startStallingProxy(gateway.url);
  const { agent, ended, logs } = await startTestAgent(gateway, { url: proxy.url, drainMs: 20_000 });
  await dispatch(gateway, 'echo');
  proxy.hold();
  const bytes = 5 * 1024 * 1024;
  const answer = dispatch(gateway, 'large', { input: { bytes } });
  // Long enough for the handler to be done, whose result the line does not take.
  await expect.poll(proxy.held).toBeGreaterThan(128 * 1024 - 1);
  agent.stop();
  await sleep(300);
  expect(logs.lines.some(({ message }) => String(message).startsWith('Not connected'))).toBe(false);
  proxy.release();
  expect((await answer).body.result.result).toHaveLength(bytes);
  await ended;
});

test('a revoked agent stops permanently, and its execution fails', async () => {
  const gateway = await startHostGateway();
  const { host, ended } = await startTestAgent(gateway);
  const answer = dispatch(gateway, 'slow', { input: { ms: 20_000 } });
  await expect.poll(() => gateway.logs.lines.some(({ message }) => message === 'slow begins')).toBe(true);
  await gateway.call(revokeHost, { params: { hostId: host.hostId } });
  expect((await answer).body.error.code).toBe('HOST_UNAVAILABLE');
  expect(await ended).toMatchObject({ code: 'UNAUTHORIZED' });
});

test('of two agents with one identity, the older stops instead of competing', async () => {
  const gateway = await startHostGateway();
  const first = await startTestAgent(gateway);
  await startTestAgent(gateway, { host: first.host });
  expect(await first.ended).toMatchObject({ code: 'CONFLICT' });
  expect((await dispatch(gateway, 'echo', { input: 1 })).status).toBe(200);
});

test('an agent reconnects to a gateway that restarts', async () => {
  const gateway = await startHostGateway();
  const proxy = await startStallingProxy(gateway.url);
  const agent = await startTestAgent(gateway, { url: proxy.url });
  proxy.drop();
  await expect.poll(agent.welcomes).toBe(2);
  expect((await dispatch(gateway, 'echo', { input: 1 })).status).toBe(200);
});

test('both sides close a stalled connection after three missed beats', async () => {
  const gateway = await startHostGateway();
  const proxy = await startStallingProxy(gateway.url);
  const clock = manualClock();
  const agent = await startTestAgent(gateway, { url: proxy.url, clock });
  const answer = dispatch(gateway, 'slow', { input: { ms: 600_000 }, timeoutMs: 600_000 });
  await expect.poll(() => gateway.logs.lines.some(({ message }) => message === 'slow begins')).toBe(true);
  proxy.stall();
  gateway.clock.advance(seconds(46));
  expect((await answer).body.error.code).toBe('HOST_UNAVAILABLE');
  const params = { hostId: agent.host.hostId };
  expect((await gateway.call(getHost, { params })).status).toBe('offline');
  proxy.resume();
  for (let i = 0; i < 4; i++) clock.advance(seconds(15));
  await expect
    .poll(
      () => {
        clock.advance(seconds(5));
        return agent.welcomes();
      },
      { interval: 100 },
    )
    .toBe(2);
  expect((await dispatch(gateway, 'echo', { input: 1 })).status).toBe(200);
});

test('the token is renewed in place five minutes before it expires', async () => {
  const gateway = await startHostGateway();
  const clock = manualClock();
  const agent = await startTestAgent(gateway, { clock });
  // An hour and a half, beat by beat: the acknowledgements travel in real time.
  for (let passed = 0; passed < 90 * 60; passed += 15) {
    clock.advance(seconds(15));
    await sleep(3);
    gateway.clock.advance(seconds(15));
    await sleep(1);
  }
  expect(agent.welcomes()).toBe(1);
  expect((await dispatch(gateway, 'echo', { input: 1 })).status).toBe(200);
});

test('the registration file is readable by its owner only', async () => {
  const gateway = await startHostGateway();
  const { host } = await startTestAgent(gateway);
  const home = join(await tempDir(), 'agent');
  const file = await writeIdentity(home, identityOf(host, gateway.url));
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect((await stat(home)).mode & 0o777).toBe(0o700);
});
