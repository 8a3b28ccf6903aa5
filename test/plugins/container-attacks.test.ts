import { readlinkSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { entryFile } from '../../src/kit/files/paths.ts';
import { splitStreams } from '../../src/plugins/backends/container/attached.ts';
import { CONTAINER_ENGINES, containersOf, useEngine } from '../support/containers.ts';
import { tempDir } from '../support/daemon.ts';
import { type ContainerOptions, startContainerBackend } from './container-backend.ts';
import type { TestEngine } from './engine.ts';
import { FIXTURES, failureOf, requestFor } from './support.ts';

// Fork bombs, memory, networks, the lifetime of tokens and orphans: containers.test.ts. What a container's token and
// socket open, and for which tenant: test/scenarios/container-callbacks.test.ts.
const ROOT = join(FIXTURES, 'container-attacker');
const SPAWNS = { platform: { childProcess: true } };

let engine: TestEngine;

type Outcome = { got?: unknown; refused?: string };

/** A container backend, and attacks by a program in it that Node's permission model does not confine. */
async function startAttacks(options: ContainerOptions = {}) {
  const started = await startContainerBackend(engine, options);
  const attack = async <T>(name: string, input?: unknown, permissions: object = {}): Promise<T> => {
    const granted = { permissions: { ...SPAWNS, ...permissions } };
    return (await started.call('unconfined', { attack: name, input }, granted)) as T;
  };
  return { ...started, attack };
}

const containersLeft = () => containersOf(engine);

describe.each(CONTAINER_ENGINES)('in a container of %s', { timeout: 120_000 }, (name) => {
  useEngine(name, (started) => {
    engine = started;
  });

  test('a program is nobody, without capabilities, ways to gain any, or namespaces of the machine', async () => {
    const { attack } = await startAttacks();
    const { status, namespaces, processes } = await attack<{
      status: Record<string, string>;
      namespaces: Record<string, string>;
      processes: number;
    }>('identity');
    expect(status).toMatchObject({
      Uid: '65534\t65534\t65534\t65534',
      Gid: '65534\t65534\t65534\t65534',
      NoNewPrivs: '1',
    });
    expect(status.Groups!.trim()).toMatch(/^(?:65534)?$/);
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      expect([set, status[set]]).toEqual([set, '0000000000000000']);
    const shared = Object.entries(namespaces).filter(
      ([kind, inside]) => readlinkSync(`/proc/self/ns/${kind}`) === inside,
    );
    expect(shared.map(([kind]) => kind).filter((kind) => !/^(?:user|time|cgroup)/.test(kind))).toEqual([]);
    expect(processes).toBe(2);
    expect((await attack<Outcome[]>('becomesRoot')).map(({ refused }) => refused)).toEqual(
      Array(4).fill('EPERM'),
    );
  });

  test('a folder that only root may read gives root its files and no capability', async () => {
    const root = join(await tempDir(), 'plugin');
    await mkdir(root, { mode: 0o700 });
    for (const file of ['attacks.js', 'unconfined.js', 'package.json'])
      await writeFile(join(root, file), await readFile(join(ROOT, file)));
    const { attack } = await startAttacks({ root });
    const { status } = await attack<{ status: Record<string, string> }>('identity');
    expect(status).toMatchObject({ Uid: '0\t0\t0\t0', CapEff: '0000000000000000', NoNewPrivs: '1' });
    expect(status.CapBnd).toBe('0000000000000000');
  });

  test('nothing can be written but memory, and /tmp holds little and runs nothing', async () => {
    const { attack } = await startAttacks({ config: { memoryMb: 512 } });
    const mounts = await attack<Array<{ target: string; type: string; limits: string[] }>>('mounts');
    const folders = [
      ...new Set(['/', ROOT, '/etc', '/usr/local/bin', ...mounts.map(({ target }) => target)]),
    ];
    const writable = await attack<string[]>('writable', folders);
    // Podman adds /run and /var/tmp to a read-only root, unless they are mounted already.
    expect(writable.filter((folder) => !['/tmp', '/dev/shm', '/dev/mqueue'].includes(folder))).toEqual([]);
    expect(writable).toContain('/tmp');
    for (const folder of ['/tmp', '/dev/shm', '/run', '/var/tmp']) {
      const limits = mounts.findLast(({ target }) => target === folder)?.limits ?? [];
      expect([folder, limits.some((limit) => /^size=\d+k$/.test(limit))]).toEqual([folder, true]);
    }
    expect(await attack('runsFromTmp')).toMatchObject({ refused: 'EACCES' });
    for (const folder of ['/tmp', '/dev/shm'])
      expect((await attack<Outcome>('fills', folder)).refused).toMatch(/ENOSPC|ENOMEM/);
    expect(
      await attack('linksOut', { folder: '/tmp', target: join(ROOT, '../attacker/attacks.js') }),
    ).toEqual({
      refused: 'ENOENT',
    });
  });

  test('files without content count as memory of the container, and end it alone', async () => {
    const { attack, call } = await startAttacks();
    for (const folder of ['/tmp', '/dev/shm']) {
      const error = await failureOf(attack('makesFiles', folder));
      expect([folder, error.code]).toEqual([folder, 'EXECUTION_ERROR']);
    }
    expect(await call('ok', 1)).toBe(1);
    await expect.poll(containersLeft).toEqual([]);
  });

  test('the kernel, the devices, the runner and the plugin cannot be changed', async () => {
    const { attack } = await startAttacks();
    const kernel = ['/proc/sysrq-trigger', '/proc/sys/kernel/core_pattern', '/proc/1/oom_score_adj'];
    const programs = [entryFile('runner'), join(ROOT, 'attacks.js'), '/usr/local/bin/node', '/etc/passwd'];
    const devices = ['/dev/mem', '/dev/kmsg', '/dev/sda', '/dev/fuse', '/proc/kcore'];
    const opened = await attack<Record<string, Outcome>>('overwrites', [
      ...kernel.slice(0, 2),
      ...programs,
      ...devices,
    ]);
    expect(Object.entries(opened).filter(([, { refused }]) => refused === undefined)).toEqual([]);
    expect(await attack('devices')).toEqual([]);
    const mounts = await attack<Array<{ target: string; options: string[]; type: string }>>('mounts');
    const unsafe = mounts.filter(
      ({ target, type, options }) =>
        (target === '/proc/sys' || /^(?:sysfs|cgroup)/.test(type)) && !options.includes('ro'),
    );
    expect(unsafe).toEqual([]);
  });

  test('files, secrets and variables of the machine are out of reach', async () => {
    const dataDir = await tempDir();
    await writeFile(join(dataDir, 'keys.json'), 'secret');
    const secrets = {
      GATEWAY_JWT_SECRET: 'a',
      SVC_MASTER_KEY: 'b',
      AWS_SECRET_ACCESS_KEY: 'c',
      NODE_OPTIONS: '-r x',
    };
    const { attack } = await startAttacks({
      dataDir,
      environment: { ...process.env, ...secrets, LISTED: 'yes' },
    });
    const listed = { env: ['LISTED', 'GATEWAY_JWT_SECRET', 'NODE_OPTIONS'] };
    const { runnerEnvironment } = await attack<{ runnerEnvironment: string[] }>('identity', null, listed);
    const names = runnerEnvironment.map((entry) => entry.split('=')[0]!);
    expect(names).toContain('LISTED');
    expect(names.filter((name) => name in secrets || /SVC_|SECRET|TOKEN/.test(name))).toEqual([]);

    const files = [join(dataDir, 'keys.json'), '/etc/shadow', '/proc/kcore', '/root/.bashrc', engine.socket];
    const read = await attack<Record<string, Outcome>>('reads', [
      ...files,
      ...files.map((at) => `/proc/1/root${at}`),
    ]);
    expect(Object.entries(read).filter(([, { refused }]) => refused === undefined)).toEqual([]);
    const home = join(FIXTURES, '../..');
    expect(await attack('reads', [join(home, 'plugins/containers.test.ts')])).toMatchObject({
      [join(home, 'plugins/containers.test.ts')]: { refused: 'ENOENT' },
    });
    const processes = await attack<Record<string, Outcome>>('lists', ['/proc/1/fd', '/var/lib', dataDir]);
    expect(processes[dataDir]).toEqual({ refused: 'ENOENT' });
  });

  test("the gateway's socket can be used, not replaced", async () => {
    const socket = join(await tempDir(), 'gateway.sock');
    const server = createServer((connection) => connection.end()).listen(socket);
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    await chmod(socket, 0o666);
    const { attack } = await startAttacks({
      issueAccess: async () => ({ env: {}, socket, end: async () => {} }),
    });
    const inside = '/run/svc/gateway.sock';
    expect(await attack('connects', inside)).toBe('connected');
    expect((await attack<Outcome[]>('replaces', inside)).map(({ got }) => got)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  test.each(['', '..'])("a manifest is not granted the engine's socket (%j)", async (above) => {
    const { call } = await startAttacks();
    const path = above === '' ? engine.socket : join(engine.socket, above);
    for (const kind of ['read', 'write']) {
      const error = await failureOf(call('ok', 1, { permissions: { fs: { [kind]: [path] } } }));
      expect([error.code, error.message]).toEqual(['SANDBOX_ERROR', expect.stringContaining(engine.socket)]);
    }
    expect(containersLeft()).toEqual([]);
  });

  test('symbolic links that leave the plugin prevent its container from being created', async () => {
    const base = await tempDir();
    const root = join(base, 'plugin');
    await mkdir(join(root, 'deep'), { recursive: true });
    for (const file of ['attacks.js', 'package.json'])
      await writeFile(join(root, file), await readFile(join(ROOT, file)));
    await writeFile(join(base, 'outside'), 'secret');
    const { call } = await startAttacks({ root });
    const link = join(root, 'deep/link');
    const leading = [
      '../../outside',
      join(base, 'outside'),
      '/',
      '/etc/passwd',
      '/proc/self/environ',
      'nowhere',
    ];
    for (const target of [...leading, engine.socket]) {
      await symlink(target, link);
      const error = await failureOf(call('ok'));
      expect([target, error.code, error.message]).toEqual([
        target,
        'SANDBOX_ERROR',
        expect.stringContaining('symbolic link'),
      ]);
      await rm(link);
    }
    await symlink('../attacks.js', link);
    expect(await call('ok', 1)).toBe(1);
    await expect.poll(containersLeft).toEqual([]);
  });

  test('a flood of output or frames slows and ends that container alone', async () => {
    const { call } = await startAttacks();
    expect(await call('floodsOutput', { megabytes: 64 })).toBe('written');
    const before = process.memoryUsage().rss;
    const flood = failureOf(call('floodsFrames', null, { timeoutMs: 5000 }));
    expect(await call('ok', 'beside it')).toBe('beside it');
    expect((await flood).code).toBe('EXECUTION_TIMEOUT');
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
    for (const handler of ['endlessFrame', 'noFrame']) {
      const error = await failureOf(call(handler));
      expect([handler, error.code, error.details]).toEqual([
        handler,
        'EXECUTION_ERROR',
        expect.objectContaining({ reason: 'protocol' }),
      ]);
    }
    await expect.poll(containersLeft).toEqual([]);
  });

  test('forged frames reach no other execution and carry no code of the platform', async () => {
    const { backend, call, logs } = await startAttacks();
    const victim = requestFor('attacks.js#holds', {
      plugin: 'container-attacker',
      root: ROOT,
      timeoutMs: 60_000,
    });
    const leaving = new AbortController();
    const held = failureOf(backend.run(victim, { signal: leaving.signal }));
    await expect.poll(() => logs.lines.some(({ message }) => message === 'holding')).toBe(true);
    expect(await call('forges', { executionId: victim.executionId })).toBe('own result');
    expect((await failureOf(call('forgesCode'))).code).toBe('EXECUTION_ERROR');
    leaving.abort();
    expect((await held).details).toMatchObject({ reason: 'cancelled' });
  });

  test('a runner cannot be killed from inside, and no process outlives the call', async () => {
    const { attack, call } = await startAttacks();
    const marker = `svc-left-behind-${process.pid}`;
    await attack('signalsRunner');
    expect(await call('leavesBehind', { marker }, { permissions: SPAWNS })).toBe(true);
    await expect.poll(containersLeft).toEqual([]);
    await expect.poll(() => processesWith(marker)).toEqual([]);
  });

  test('hostile ids stay labels of its own container, which the engine names and holds to all limits', async () => {
    const { backend, logs } = await startAttacks({ config: { pidsLimit: 50 } });
    const leaving = new AbortController();
    const hostile = '../../x?force=true&name="svc\n--privileged';
    const request = requestFor('attacks.js#holds', {
      plugin: hostile,
      root: ROOT,
      executionId: hostile,
      timeoutMs: 60_000,
    });
    const held = failureOf(backend.run(request, { signal: leaving.signal }));
    await expect.poll(() => logs.lines.some(({ message }) => message === 'holding')).toBe(true);
    const [container] = JSON.parse(engine.cli('inspect', containersLeft()[0]!));
    const { Labels } = container.Config;
    expect(Object.keys(Labels).sort()).toEqual(['svc.boot', 'svc.execution', 'svc.owner', 'svc.plugin']);
    expect([Labels['svc.execution'], Labels['svc.plugin']]).toEqual([hostile, hostile]);
    expect(container.Name).toMatch(/^\/?[a-z_]+$/);
    expect(container.HostConfig).toMatchObject({
      Privileged: false,
      ReadonlyRootfs: true,
      Memory: 128 * 1024 * 1024,
      PidsLimit: 50,
      NetworkMode: 'none',
    });
    leaving.abort();
    await held;
    await expect.poll(containersLeft).toEqual([]);
  });
});

/** The processes of this machine whose command line holds a text. */
async function processesWith(text: string): Promise<string[]> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(ids.map((id) => readFile(`/proc/${id}/cmdline`, 'utf8').catch(() => '')));
  return ids.filter((_, index) => lines[index]!.includes(text));
}

test('what is read of one stream of a container never lets the other one pile up', async () => {
  const STDOUT = 1;
  const STDERR = 2;
  const socket = new PassThrough();
  const { channel, stderr } = splitStreams(socket);
  const piece = Buffer.alloc(64 * 1024, 'x');
  const framed = (kind: number) => Buffer.concat([Buffer.from([kind, 0, 0, 0, 0, 1, 0, 0]), piece]);
  // Nothing reads the channel, as when its sender has used up its share; stderr is read all the time.
  stderr.resume();
  for (let written = 0; written < 200; written++) {
    socket.write(Buffer.concat([framed(STDERR), framed(STDOUT)]));
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(channel.readableLength).toBeLessThan(1024 * 1024);

  channel.resume();
  await expect.poll(() => socket.readableLength + channel.readableLength).toBe(0);
});
