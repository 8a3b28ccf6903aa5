import { spawn } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { manualClock } from '../../src/kit/time/clock.ts';
import { lostProcess } from '../../src/plugins/backends/worker/exit-reason.ts';
import { isAlive } from '../support/is-alive.ts';
import { eventually, FIXTURES, failureOf, requestFor, SANDBOXES, startBackend } from './support.ts';

const pidOf = (result: unknown) => (result as { pid: number }).pid;

test('a process is kept warm for the next call and leaves when idle', async () => {
  const clock = manualClock();
  const { call, backend } = await startBackend({ clock, config: { idleMs: 5000 } });
  const first = pidOf(await call('attacks.js#ok'));
  expect(pidOf(await call('attacks.js#ok'))).toBe(first);
  clock.advance(4999);
  expect(pidOf(await call('attacks.js#ok'))).toBe(first);
  clock.advance(5000);
  await eventually(() => backend.stats().length === 0);
  expect(pidOf(await call('attacks.js#ok'))).not.toBe(first);
});

test('one call at a time per process, as many at once as there may be processes', async () => {
  const { call, backend } = await startBackend({ config: { maxProcesses: 2 } });
  const slow = (ms: number) => call('handlers.ts#slowly', { plugin: 'good', input: ms });
  await Promise.all([slow(1), slow(1)]);
  const calls = Promise.all([slow(200), slow(200), slow(1)]);
  await eventually(() => backend.stats()[0]?.running === 2);
  expect(backend.stats()).toEqual([
    expect.objectContaining({ processes: 2, running: 2, slots: 2, queued: 1 }),
  ]);
  expect(await calls).toEqual([{ waited: 200 }, { waited: 200 }, { waited: 1 }]);
});

test('quotas.concurrency lets calls share a process, and its fate', async () => {
  const permissions = { quotas: { concurrency: 3 } };
  const { call, backend } = await startBackend({ config: { maxProcesses: 1 } });
  expect(await call('attacks.js#ok', { permissions })).toMatchObject({ ok: true });
  const waiting = failureOf(call('attacks.js#hangs', { permissions }));
  await eventually(() => backend.stats()[0]?.running === 1);
  expect(backend.stats()[0]?.slots).toBe(3);
  const exiting = failureOf(call('attacks.js#exits', { permissions, input: 5 }));
  for (const failure of await Promise.all([waiting, exiting])) {
    const details = { reason: 'exit', exitCode: 5, interrupted: true };
    expect([failure.code, failure.details]).toEqual(['EXECUTION_ERROR', details]);
  }
  expect(await call('attacks.js#ok', { permissions })).toMatchObject({ ok: true });
});

test('plugins and sets of permissions do not share processes', async () => {
  const { call, backend } = await startBackend();
  await call('attacks.js#ok');
  await call('attacks.js#ok', { permissions: { env: ['X'] } });
  await call('handlers.ts#nothing', { plugin: 'good' });
  expect(backend.stats().map(({ pluginId }) => pluginId)).toEqual(['attacker', 'attacker', 'good']);
});

describe('tenants', () => {
  const remember = (call: (handler: string, options: object) => Promise<unknown>, tenantId: string) =>
    call('attacks.js#remembers', { tenantId }) as Promise<{ pid: number; guests: string[] }>;

  test('share the processes of a plugin unless told otherwise', async () => {
    const { call } = await startBackend({ config: { maxProcesses: 1 } });
    await remember(call, 'acme');
    expect((await remember(call, 'globex')).guests).toEqual(['acme', 'globex']);
  });

  test('with isolation by tenant, a process serves one and no other', async () => {
    const { call, backend } = await startBackend({ config: { maxProcesses: 2, isolation: 'tenant' } });
    const first = await remember(call, 'acme');
    const other = await remember(call, 'globex');
    expect([first.guests, other.guests]).toEqual([['acme'], ['globex']]);
    expect(await remember(call, 'acme')).toEqual({ pid: first.pid, guests: ['acme', 'acme'] });
    expect(await remember(call, 'globex')).toEqual({ pid: other.pid, guests: ['globex', 'globex'] });
    // A third one takes the place of one that waits.
    expect((await remember(call, 'initech')).guests).toEqual(['initech']);
    expect(backend.stats()[0]?.processes).toBeLessThanOrEqual(2);
  });

  test('every waiting call is served, however many tenants and calls there are', async () => {
    const { call, backend } = await startBackend({ config: { maxProcesses: 2, isolation: 'tenant' } });
    const tenants = Array.from({ length: 24 }, (_, index) => `tenant-${index % 6}`);
    const seen = await Promise.all(tenants.map((tenant) => remember(call, tenant)));
    for (const [index, { guests }] of seen.entries())
      expect(new Set(guests)).toEqual(new Set([tenants[index]]));
    expect(backend.stats()[0]).toMatchObject({ queued: 0, running: 0 });
  });
});

test('a full queue answers SERVICE_UNAVAILABLE with Retry-After; queued calls are served', async () => {
  const { call, backend } = await startBackend({ config: { maxProcesses: 1 }, maxQueue: 2 });
  await call('handlers.ts#nothing', { plugin: 'good' });
  const slow = call('handlers.ts#slowly', { plugin: 'good', input: 300 });
  const queued = [1, 2].map((ms) => call('handlers.ts#slowly', { plugin: 'good', input: ms }));
  await eventually(() => backend.stats().some(({ pluginId, queued }) => pluginId === 'good' && queued === 2));
  const refused = await failureOf(call('handlers.ts#slowly', { plugin: 'good', input: 3 }));
  expect([refused.code, refused.headers['retry-after']]).toEqual([
    'SERVICE_UNAVAILABLE',
    expect.stringMatching(/^\d+$/),
  ]);
  expect(await Promise.all([slow, ...queued])).toEqual([{ waited: 300 }, { waited: 1 }, { waited: 2 }]);
});

test("the timeout is the daemon's: ctx.signal first, then the process; the clock starts with the handler", async () => {
  const clock = manualClock();
  const { call, backend } = await startBackend({ clock });
  const before = pidOf(await call('attacks.js#ok'));
  const polite = failureOf(call('attacks.js#hangsPolitely', { timeoutMs: 1000 }));
  await eventually(() => backend.stats()[0]?.running === 1);
  clock.advance(999);
  expect(backend.stats()[0]?.running).toBe(1);
  clock.advance(1);
  expect(await polite).toMatchObject({
    code: 'EXECUTION_TIMEOUT',
    message: '"attacks.js#hangsPolitely" of plugin attacker did not finish within 1000 ms.',
  });
  await eventually(() => backend.stats()[0]?.running === 0);
  expect(pidOf(await call('attacks.js#ok'))).toBe(before);

  const stubborn = failureOf(call('attacks.js#blocks', { permissions: { quotas: { timeoutMs: 500 } } }));
  await eventually(() => backend.stats().some(({ running }) => running === 1));
  clock.advance(500);
  expect((await stubborn).details).toEqual({ timeoutMs: 500 });
});

test('a caller that disconnects cancels its call, queued or running', async () => {
  const { call, backend } = await startBackend({ config: { maxProcesses: 1 } });
  await call('attacks.js#ok');
  const leaving = new AbortController();
  const run = (handler: string) => failureOf(backend.run(requestFor(handler), { signal: leaving.signal }));
  const outcomes = [run('attacks.js#hangs'), run('attacks.js#ok')];
  await eventually(() => backend.stats()[0]?.queued === 1);
  leaving.abort();
  for (const failure of await Promise.all([...outcomes, run('attacks.js#ok')])) {
    expect([failure.code, failure.details]).toEqual(['EXECUTION_ERROR', { reason: 'cancelled' }]);
  }
  expect(await call('attacks.js#ok')).toMatchObject({ ok: true });
});

test('a plugin that crashes on every load is not started for a while', async () => {
  const clock = manualClock();
  const { call } = await startBackend({ clock });
  const load = () => failureOf(call('dies-at-load.js#ok'));
  for (let i = 0; i < 3; i++) expect((await load()).message).toMatch(/exited with code 9|3 times in a row/);
  const refused = await load();
  expect(refused.message).toMatch(
    /crashed 3 times in a row while loading; the next attempt is in 1 s.*code 9/,
  );
  expect([refused.code, refused.headers]).toEqual(['EXECUTION_ERROR', { 'retry-after': '1' }]);
  expect((await failureOf(call('attacks.js#ok'))).message).toMatch(/3 times in a row/);
  clock.advance(1000);
  expect(await call('attacks.js#ok')).toMatchObject({ ok: true });
  expect((await load()).message).toMatch(/exited with code 9/);
});

test('an execution id that is already running is refused', async () => {
  const permissions = { quotas: { concurrency: 2 } };
  const { call, backend } = await startBackend({ config: { maxProcesses: 1 } });
  await call('attacks.js#ok', { permissions });
  const first = call('handlers.ts#slowly', { plugin: 'good', executionId: 'same', input: 200, permissions });
  await eventually(() => backend.stats().some(({ running }) => running === 1));
  const second = call('handlers.ts#slowly', { plugin: 'good', executionId: 'same', input: 1, permissions });
  expect((await failureOf(second)).code).toBe('CONFLICT');
  expect(await first).toEqual({ waited: 200 });
});

test('input that is no JSON is refused before anything runs', async () => {
  const { call } = await startBackend();
  expect((await failureOf(call('attacks.js#ok', { input: 1n }))).code).toBe('VALIDATION_ERROR');
});

test('a plugin whose folder is gone, or whose sandbox cannot be had, is SANDBOX_ERROR', async () => {
  const { call } = await startBackend();
  const failure = await failureOf(call('h.js#h', { root: '/nowhere/plugin' }));
  expect([failure.code, failure.message]).toEqual([
    'SANDBOX_ERROR',
    expect.stringContaining('/nowhere/plugin'),
  ]);
});

test('output of a process before a failed start is logged, not sent to callers', () => {
  const stderr = '    at load (/srv/private/runner.js:1:1)';
  const exit = { code: 1, signal: null, ended: null, fatal: null, stderr, memoryMb: 64, hadLoaded: false };
  const { code, message, details, cause } = lostProcess({ ...exit, wasReady: false }, 'p');
  expect([code, details]).toEqual(['SANDBOX_ERROR', { exitCode: 1, signal: null }]);
  expect(message).toContain('exited with code 1');
  expect(message).not.toContain('/srv/private');
  expect(String(cause)).toContain('/srv/private/runner.js');
});

test('a plugin finds the packages it depends on, beside and above it, and none it does not name', async () => {
  const { call, dataDir } = await startBackend();
  const project = `${dataDir}-project`;
  const write = async (file: string, text: string) => {
    const path = join(project, file);
    await mkdir(join(path, '..'), { recursive: true });
    await writeFile(path, text);
  };
  const pack = (name: string, dependencies = {}) => JSON.stringify({ name, main: 'index.js', dependencies });
  await write('plugins/p/package.json', pack('p', { near: '1', far: '1' }));
  await write(
    'plugins/p/h.js',
    "exports.h = () => [require('near'), require('far')]; exports.other = () => require('unnamed');",
  );
  await write('plugins/p/node_modules/near/package.json', pack('near'));
  await write('plugins/p/node_modules/near/index.js', "module.exports = 'near';");
  await write('node_modules/far/package.json', pack('far', { deep: '1' }));
  await write('node_modules/far/index.js', "module.exports = 'far and ' + require('deep');");
  await write('node_modules/deep/package.json', pack('deep'));
  await write('node_modules/deep/index.js', "module.exports = 'deep';");
  await write('node_modules/unnamed/package.json', pack('unnamed'));
  await write('node_modules/unnamed/index.js', "module.exports = 'unnamed';");
  onTestFinished(() => rm(project, { recursive: true }));
  for (const sandbox of SANDBOXES) {
    const platform = await startBackend({ sandbox });
    const options = { plugin: 'p', root: join(project, 'plugins/p') };
    expect(await platform.call('h.js#h', options)).toEqual(['near', 'far and deep']);
    expect((await failureOf(platform.call('h.js#other', options))).code).toMatch(
      /EXECUTION_ERROR|PERMISSION_DENIED/,
    );
  }
  expect(await call('attacks.js#ok')).toMatchObject({ ok: true });
});

describe.each(SANDBOXES)('under the sandbox "%s"', (sandbox) => {
  test('folders that the manifest grants can be read and written', async () => {
    const platform = await startBackend({ sandbox });
    const shared = `${platform.dataDir}-shared`;
    await mkdir(shared);
    onTestFinished(() => rm(shared, { recursive: true }));
    await writeFile(join(shared, 'in.txt'), 'granted');
    const permissions = { fs: { read: [shared], write: [shared] } };
    const call = (name: string, file: string) =>
      platform.call(`attacks.js#${name}`, { permissions, input: join(shared, file) });
    expect(await call('reads', 'in.txt')).toEqual({ got: 'granted' });
    expect(await call('writes', 'out.txt')).toEqual({});
    expect(await call('reads', 'out.txt')).toEqual({ got: 'mine' });
  });

  test('plugin processes die with a daemon that is killed, even when they block', async () => {
    const script = `
      const { WorkerBackend } = await import('${new URL('../../src/plugins/index.ts', import.meta.url)}');
      const { systemClock } = await import('${new URL('../../src/kit/time/clock.ts', import.meta.url)}');
      const { silentLogger } = await import('${new URL('../../src/kit/telemetry/logger.ts', import.meta.url)}');
      const backend = new WorkerBackend({
        config: { maxProcesses: 2, memoryMb: 256, idleMs: 60000, sandbox: '${sandbox}' },
        services: {}, logger: silentLogger, clock: systemClock, dataDir: '/nowhere/.svc',
      });
      const request = ${JSON.stringify(requestFor('attacks.js#ok', { root: join(FIXTURES, 'attacker'), timeoutMs: 60_000 }))};
      await backend.run(request);
      backend.run({ ...request, executionId: 'a', handler: 'attacks.js#blocks' });
      backend.run({ ...request, executionId: 'b', handler: 'attacks.js#hangs' });
      setInterval(() => {
        const [stats] = backend.stats();
        if (stats.running === 2) console.log(stats.pids.join(' '));
      }, 20);`;
    const daemon = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void daemon.kill('SIGKILL'));
    const line = await new Promise<string>((resolve) =>
      daemon.stdout.once('data', (data) => resolve(String(data))),
    );
    const pids = line.trim().split('\n')[0]!.split(' ').map(Number);
    expect(pids.length).toBe(2);
    expect(pids.every(isAlive)).toBe(true);
    daemon.kill('SIGKILL');
    await eventually(() => !pids.some(isAlive));
  });
});

test('a process whose memory is filled by what a handler left behind is ended between calls', async () => {
  const { call, backend } = await startBackend({ config: { maxProcesses: 1, memoryMb: 160 } });
  await call('attacks.js#keepsMemoryLater', { input: 800 });
  await eventually(() => backend.stats().length === 0);
  expect(await call('attacks.js#ok')).toMatchObject({ ok: true });
});

test('a process that fills its memory over many calls is replaced between them, not during one', async () => {
  const { call, backend } = await startBackend({
    config: { maxProcesses: 1, memoryMb: 160 },
    services: { state: { get: async () => ({}) } },
  });
  const pids = new Set<number>();
  for (let i = 0; i < 12; i++) {
    pids.add(pidOf(await call('attacks.js#keepsMemory', { input: 12 })));
    await new Promise((resolve) => setTimeout(resolve, 80));
  }
  expect(pids.size).toBeGreaterThan(1);
  await backend.close();
});
