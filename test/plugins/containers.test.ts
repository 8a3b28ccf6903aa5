import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { containerOwner } from '../../src/plugins/backends/container/index.ts';
import { CONTAINER_ENGINES, containersOf, useEngine } from '../support/containers.ts';
import { tempDir } from '../support/daemon.ts';
import { type ContainerOptions, startContainerBackend } from './container-backend.ts';
import { missing, type TestEngine } from './engine.ts';
import { failureOf, requestFor } from './support.ts';

const TOOLS = fileURLToPath(new URL('../fixtures/projects/hosts/plugins/tools', import.meta.url));

let engine: TestEngine;

const startContainers = (options: ContainerOptions = {}) =>
  startContainerBackend(engine, { plugin: '@acme/tools', root: TOOLS, file: 'handlers.js', ...options });

const containersLeft = () => containersOf(engine).length;

describe.each(CONTAINER_ENGINES)('a container of %s', { timeout: 60_000 }, (name) => {
  useEngine(name, (started) => {
    engine = started;
  });

  test('runs a handler as a worker does, with state and log lines, and is gone afterwards', async () => {
    const { call, logs } = await startContainers();
    expect(await call('echo', { a: [1, 'ü'] })).toEqual({ a: [1, 'ü'] });
    expect(await call('tally')).toBe(1);
    expect(await call('tally')).toBe(2);
    expect(logs.lines).toContainEqual(
      expect.objectContaining({ message: 'counted 2', pluginId: '@acme/tools' }),
    );
    expect(await call('about')).toMatchObject({ hostname: 'svc-runner', uid: 65534, pid: 1 });
    await expect.poll(containersLeft).toBe(0);
  });

  test('has no network unless the manifest asks for all of it', async () => {
    const server = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const target = { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
    const { call } = await startContainers({ config: { network: 'host' } });
    expect(await call('network', target)).not.toBe('connected');
    expect(await call('network', target, { permissions: { network: ['example.com'] } })).not.toBe(
      'connected',
    );
    expect(await call('network', target, { permissions: { network: ['*'] } })).toBe('connected');
  });

  test('writes nowhere but where the manifest says', async () => {
    const { call } = await startContainers();
    const writable = join(await tempDir(), 'out');
    await mkdir(writable, { mode: 0o777 });
    const paths = [join(TOOLS, 'x'), '/x', '/etc/x', '/usr/local/bin/node', join(writable, 'x')];
    const denied = ['ERR_ACCESS_DENIED', 'ERR_ACCESS_DENIED', 'ERR_ACCESS_DENIED', 'ERR_ACCESS_DENIED'];
    expect(await call('write', { paths })).toEqual([...denied, 'ERR_ACCESS_DENIED']);
  });

  test('a fork bomb stops at the limit of processes', async () => {
    const { call } = await startContainers({ config: { pidsLimit: 40 } });
    const started = await call('forks', { most: 200 }, { permissions: { platform: { childProcess: true } } });
    expect(started).toBeLessThan(40);
    expect(await call('echo', 1)).toBe(1);
  });

  test('exceeding the memory limit ends only that container', async () => {
    const { call } = await startContainers();
    const error = await failureOf(call('memory'));
    expect(error.code).toBe('EXECUTION_ERROR');
    expect(await call('echo', 1)).toBe(1);
    await expect.poll(containersLeft).toBe(0);
  });

  test.each([
    ['throws', 'fail', undefined, 20_000, 'EXECUTION_ERROR'],
    ['ends its process', 'exit', undefined, 20_000, 'EXECUTION_ERROR'],
    ['never returns', 'spin', undefined, 1000, 'EXECUTION_TIMEOUT'],
  ])('whose handler %s fails that call and is removed', async (_what, handler, input, timeoutMs, code) => {
    const { call } = await startContainers();
    expect((await failureOf(call(handler, input, { timeoutMs }))).code).toBe(code);
    await expect.poll(containersLeft).toBe(0);
  });

  test('is removed when its caller leaves, and when the backend closes', async () => {
    const { backend } = await startContainers();
    const leaving = new AbortController();
    const request = () =>
      requestFor('handlers.js#spin', { plugin: '@acme/tools', root: TOOLS, timeoutMs: 60_000 });
    const first = failureOf(backend.run(request(), { signal: leaving.signal }));
    const second = failureOf(backend.run(request()));
    await expect.poll(containersLeft).toBe(2);
    leaving.abort();
    expect((await first).details).toMatchObject({ reason: 'cancelled' });
    await expect.poll(containersLeft).toBe(1);
    await backend.close();
    await second;
    expect(containersLeft()).toBe(0);
  });

  test("has its own token while it runs; the platform's secret only by permission; neither after its end", async () => {
    const issued: string[] = [];
    const ended: string[] = [];
    const { call } = await startContainers({
      issueAccess: async ({ executionId }) => {
        issued.push(executionId);
        return {
          env: { SVC_TOKEN: `token-of-${executionId}` },
          end: async () => void ended.push(executionId),
        };
      },
    });
    const { env } = (await call('environment')) as { env: Record<string, string> };
    expect(env.SVC_TOKEN).toBe(`token-of-${issued[0]}`);
    expect(Object.keys(env).filter((name) => /SECRET|GATEWAY|KEY/.test(name))).toEqual([]);
    await failureOf(call('fail'));
    expect(ended).toEqual(issued);
    expect(issued).toHaveLength(2);
  });

  test('left behind by a killed gateway is removed at the next start; those of others stay', async () => {
    const mine = await tempDir();
    const labels = (owner: string) => ['--label', `svc.owner=${owner}`, '--label', 'svc.boot=earlier'];
    const owner = containerOwner({ dataDir: mine, instance: 'node-a' });
    const sleeping = [
      '--network',
      'none',
      // As ours have it: Podman asks first, and for ten seconds.
      '--stop-timeout',
      '0',
      'svc-runner',
      '/usr/local/bin/node',
      '-e',
      'setTimeout(() => {}, 1e6)',
    ];
    engine.cli('run', '--detach', ...labels(owner), ...sleeping);
    engine.cli('run', '--detach', ...labels('somebody-else'), ...sleeping);
    const { backend } = await startContainers({ dataDir: mine });
    expect(await backend.removeOrphans()).toBe(1);
    expect(containersLeft()).toBe(1);
    engine.removeAll();
  });

  test('the number of concurrent containers is limited', async () => {
    const { call } = await startContainers({ config: { maxContainers: 2 } });
    let most = 0;
    const timer = setInterval(() => {
      most = Math.max(most, containersLeft());
    }, 150);
    const results = await Promise.all([1, 2, 3, 4].map((n) => call('echo', n)));
    clearInterval(timer);
    expect(results).toEqual([1, 2, 3, 4]);
    // Those on their way out are still seen by the engine.
    expect(most).toBeLessThanOrEqual(4);
  });

  test('a missing image is reported with the command to build it', async () => {
    const { call } = await startContainers({ config: { image: 'not-there' } });
    const error = await failureOf(call('echo'));
    expect([error.code, error.message]).toEqual([
      'SANDBOX_ERROR',
      expect.stringContaining('npm run image:runner'),
    ]);
  });
});

describe.skipIf(missing('podman without root') !== undefined)(
  'an engine without root',
  { timeout: 60_000 },
  () => {
    useEngine('podman without root', (started) => {
      engine = started;
    });

    // Where cgroups v2 are delegated to the user there is nothing to refuse.
    const setsNone = !existsSync('/sys/fs/cgroup/cgroup.controllers');
    test.runIf(setsNone)(
      'that sets no limits runs nothing, unless the config takes it as it is',
      async () => {
        const refusing = await startContainers();
        const error = await failureOf(refusing.call('echo'));
        // Where cgroups v2 are delegated to the user there is nothing to refuse.
        expect([error.code, error.details]).toEqual([
          'SANDBOX_ERROR',
          expect.objectContaining({ missing: ['memory', 'processes'] }),
        ]);
        await expect.poll(containersLeft).toBe(0);

        const { call, logs } = await startContainers({ config: { requireLimits: false } });
        expect(await call('echo', { a: 1 })).toEqual({ a: 1 });
        expect(await call('about')).toMatchObject({ uid: 65534, pid: 1 });
        expect(await call('write', { paths: ['/x', join(TOOLS, 'x')] })).toEqual([
          'ERR_ACCESS_DENIED',
          'ERR_ACCESS_DENIED',
        ]);
        expect(
          logs.lines.filter(({ message }) => String(message).includes('run without limits')),
        ).toHaveLength(1);
        await expect.poll(containersLeft).toBe(0);
      },
    );

    test('a network it does not have is reported in its own words', async () => {
      const { call } = await startContainers({
        config: { requireLimits: false, network: 'no-such-network' },
      });
      const error = await failureOf(call('echo', 1, { permissions: { network: ['*'] } }));
      expect([error.code, error.message]).toEqual([
        'SANDBOX_ERROR',
        expect.stringContaining('The container engine refused'),
      ]);
    });
  },
);

test('without an engine the failure names the socket', async () => {
  engine ??= { socket: '/nowhere/engine.sock' } as TestEngine;
  const { call } = await startContainers({ config: { socket: '/nowhere/engine.sock' } });
  const error = await failureOf(call('echo'));
  expect([error.code, error.message]).toEqual([
    'SANDBOX_ERROR',
    expect.stringContaining('/nowhere/engine.sock'),
  ]);
});
