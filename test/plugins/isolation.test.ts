import { createSocket } from 'node:dgram';
import { existsSync } from 'node:fs';
import { copyFile, cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { PlatformError } from '../../src/kit/errors/errors.ts';
import { tempDir } from '../support/daemon.ts';
import { isAlive } from '../support/is-alive.ts';
import {
  type CallOptions,
  eventually,
  FIXTURES,
  failureOf,
  SANDBOXES,
  sharedBackends,
  startBackend,
  type TestBackend,
} from './support.ts';

/** A compiled addon that works everywhere these tests run. */
const ADDON = join(
  import.meta.dirname,
  `../../node_modules/better-sqlite3/prebuilds/${process.platform}-${process.arch}.node`,
);

/** The attacker's code in a folder of its own. */
async function ownPlugin({ dataDir }: TestBackend, name: string): Promise<string> {
  const root = join(dataDir, 'plugins', name);
  await cp(join(FIXTURES, 'attacker'), root, { recursive: true });
  return root;
}

/** Runs an attack that must fail, with another plugin served while it goes on, and shows that the next call works. */
async function expectContained(
  { call, backend }: TestBackend,
  handler: string,
  options: CallOptions,
): Promise<PlatformError> {
  const attack = failureOf(call(handler, options));
  const neighbour = call('handlers.ts#greet', { plugin: 'good', input: { name: 'you' } });
  expect(await neighbour).toBe('Hello you');
  const error = await attack;
  expect(await call('attacks.js#ok', { input: 'again' })).toMatchObject({ ok: true, input: 'again' });
  expect(backend.stats().every(({ running, queued }) => running === 0 && queued === 0)).toBe(true);
  return error;
}

type Attack = [handler: string, input: unknown, code: string, message: RegExp];

const shared = sharedBackends({ config: { maxProcesses: 1 } });

describe.each(SANDBOXES)('under the sandbox "%s", only the call itself fails', (sandbox) => {
  const fresh = (config = {}) => startBackend({ sandbox, config: { maxProcesses: 1, ...config } });
  const start = () => shared(sandbox);

  const expectFailure = async (
    platform: TestBackend,
    [name, input, code, message]: Attack,
  ): Promise<void> => {
    const error = await expectContained(platform, `attacks.js#${name}`, { input });
    expect([name, error.code, error.message]).toEqual([name, code, expect.stringMatching(message)]);
  };

  test.each<Attack>([
    ['exits', 3, 'EXECUTION_ERROR', /exited with code 3/],
    ['exits', 0, 'EXECUTION_ERROR', /exited with code 0/],
    ['reallyExits', undefined, 'EXECUTION_ERROR', /exited with code 3/],
    ['aborts', undefined, 'EXECUTION_ERROR', /SIGABRT|code 134/],
    ['crashes', undefined, 'EXECUTION_ERROR', /uncaught exception: thrown in a timer/],
    ['rejectsUnseen', undefined, 'EXECUTION_ERROR', /unhandled rejection: nobody awaits this/],
    ['manyValuesFrame', undefined, 'EXECUTION_ERROR', /sent a frame.*more than 500000 values/],
    ['badJson', undefined, 'EXECUTION_ERROR', /sent a frame that cannot be read/],
    ['deepFrame', undefined, 'EXECUTION_ERROR', /nested deeper than 512/],
    ['endlessFrame', undefined, 'EXECUTION_ERROR', /frame of more than 8388608 bytes/],
  ])('%s(%j) ends its process, and fails with %s', async (...attack) => {
    await expectFailure(await start(), attack);
  });

  test('a throw or an invalid answer of a handler is reported as such, one after the other', async () => {
    const platform = await start();
    const attacks: Attack[] = [
      ['throws', undefined, 'EXECUTION_ERROR', /^thrown on purpose$/],
      ['throwsOddly', undefined, 'EXECUTION_ERROR', /without a message/],
      ['hugeResult', 7_000_000, 'EXECUTION_ERROR', /7000\d+ bytes as JSON; at most 6291456/],
      ['manyValues', undefined, 'EXECUTION_ERROR', /result is JSON of more than 500000 values/],
      ['cyclicResult', undefined, 'EXECUTION_ERROR', /cannot be sent as JSON: .*circular/i],
      ['bigintResult', undefined, 'EXECUTION_ERROR', /cannot be sent as JSON: .*BigInt/],
      ['deepResult', undefined, 'EXECUTION_ERROR', /nested deeper than 512|call stack/i],
      ['streamResult', undefined, 'EXECUTION_ERROR', /stream or Response/],
      ['forgesCode', undefined, 'EXECUTION_ERROR', /^forged$/],
      ['forgesShape', undefined, 'EXECUTION_ERROR', /not a CommandResult/],
      ['readsUncaught', '/etc/passwd', 'PERMISSION_DENIED', /permissions\.fs\.read/],
    ];
    for (const attack of attacks) await expectFailure(platform, attack);
  });

  test.each(['hangs', 'blocks', 'floodsFrames'])('%s is ended at its timeout', async (name) => {
    const error = await expectContained(await start(), `attacks.js#${name}`, { timeoutMs: 400 });
    expect([error.code, error.details]).toEqual(['EXECUTION_TIMEOUT', { timeoutMs: 400 }]);
  });

  test.each(['heap', 'buffers'])('running out of memory (%s) is reported as such', async (name) => {
    const error = await expectContained(await fresh({ memoryMb: 128 }), `attacks.js#${name}`, {
      timeoutMs: 20_000,
    });
    expect(error.code).toBe('EXECUTION_ERROR');
    expect(error.message).toMatch(/memory.*128 MB are allowed/);
  });

  test('a module that does not load fails its call alone', async () => {
    const error = await expectContained(await start(), 'broken-module.js#ok', {});
    expect([error.code, error.message]).toEqual([
      'EXECUTION_ERROR',
      '"broken-module.js#ok" could not be loaded: broken-module.js:2:7: this module does not load\n    | throw new Error(\'this module does not load\');',
    ]);
  });

  test('a flood of output or log lines harms neither the call nor the daemon', async () => {
    const platform = await fresh();
    for (const handler of ['floodsStdout', 'floodsLog', 'hugeLogLine']) {
      expect(await platform.call(`attacks.js#${handler}`, { timeoutMs: 30_000 })).toMatchObject({ ok: true });
    }
    expect(platform.logs.lines.length).toBeLessThan(2500);
    const longest = Math.max(...platform.logs.lines.map((line) => JSON.stringify(line).length));
    expect(longest).toBeLessThan(64 * 1024);
    expect(await platform.call('attacks.js#ok')).toMatchObject({ ok: true });
  });

  test('keys named __proto__ in a result set no prototype', async () => {
    const { call } = await start();
    const result = (await call('attacks.js#pollutes')) as Record<string, object>;
    expect(Object.assign({}, result)).not.toHaveProperty('admin');
    expect(Object.assign({}, result.nested)).not.toHaveProperty('admin');
    expect(Object.hasOwn(result, '__proto__')).toBe(false);
  });

  test('files outside the plugin can be neither read, listed, written nor linked', async () => {
    const { call, dataDir } = await start();
    await writeFile(join(dataDir, 'keys.json'), 'the keys');
    const outcomes = [
      await call('attacks.js#reads', { input: '/etc/passwd' }),
      await call('attacks.js#reads', { input: join(dataDir, 'keys.json') }),
      await call('attacks.js#lists', { input: dataDir }),
      await call('attacks.js#writes', { input: '/tmp/svc-attack' }),
      await call('attacks.js#writes', { input: join(dataDir, 'x') }),
      await call('attacks.js#writes', { input: new URL('x', import.meta.url).pathname }),
      await call('attacks.js#links', { input: { target: '/etc/passwd', path: '/tmp/svc-link' } }),
      await call('attacks.js#parentEnvironment'),
    ];
    expect(outcomes).toEqual(outcomes.map(() => ({ refused: 'ERR_ACCESS_DENIED' })));
  });

  test('no processes, threads, addons, internal bindings or SQLite', async () => {
    const { call } = await start();
    for (const handler of ['spawns', 'forks', 'threads']) {
      expect(await call(`attacks.js#${handler}`)).toEqual({ refused: 'ERR_ACCESS_DENIED' });
    }
    expect(await call('attacks.js#sqlite')).toEqual({ refused: 'ERR_UNKNOWN_BUILTIN_MODULE' });
    expect(await call('attacks.js#binding')).toEqual({ refused: 'PERMISSION_DENIED' });
  });

  test('a fork bomb makes no process and no thread', async () => {
    const { call } = await start();
    expect(await call('attacks.js#forkBomb', { timeoutMs: 30_000 })).toEqual({ made: 0 });
  });

  test('a native addon is not loaded, though it lies in the plugin', async () => {
    const platform = await start();
    const root = await ownPlugin(platform, 'native');
    const addon = join(root, 'native.node');
    await copyFile(ADDON, addon);
    const call = (handler: string) => platform.call(handler, { plugin: 'native', root, input: addon });
    expect(await call('attacks.js#addon')).toEqual({ refused: 'PERMISSION_DENIED' });
    expect(await call('attacks.js#dlopens')).toEqual({ refused: 'PERMISSION_DENIED' });
  });

  test.each(["ATTACH DATABASE '%' AS x; CREATE TABLE x.t (a)", "VACUUM INTO '%'"])(
    'node:sqlite writes no file: %s',
    async (statement) => {
      const { call, dataDir } = await start();
      const path = join(dataDir, 'by-sqlite');
      const sql = statement.replace('%', path);
      expect(await call('attacks.js#sqliteWrites', { input: { path, sql } })).toBe(true);
      expect(existsSync(path)).toBe(false);
    },
  );

  test('a link made where it may write does not lead it out', async () => {
    const { call, dataDir } = await start();
    const folder = await tempDir();
    const permissions = { fs: { read: [folder], write: [folder] } };
    await writeFile(join(dataDir, 'keys.json'), 'the keys');
    for (const target of ['/etc/passwd', join(dataDir, 'keys.json'), '../../../../etc/passwd']) {
      const input = { target, path: join(folder, 'link') };
      expect(await call('attacks.js#linksOut', { permissions, input })).toHaveProperty('refused');
    }
  });

  test('no signals, debugger or priorities for other processes', async () => {
    const { call } = await start();
    let signals = 0;
    const count = () => signals++;
    process.on('SIGUSR1', count);
    onTestFinished(() => void process.off('SIGUSR1', count));
    for (const handler of ['kills', 'killsGroup', 'debugs', 'renices']) {
      expect(await call(`attacks.js#${handler}`)).toEqual({ refused: 'PERMISSION_DENIED' });
    }
    expect(await call('attacks.js#kills', { input: process.pid })).toEqual({ refused: 'PERMISSION_DENIED' });
    expect(signals).toBe(0);
  });

  test('no sockets, not even to this machine', async () => {
    const server = createServer((_, response) => response.end('inside')).listen(0, '127.0.0.1');
    const udp = createSocket('udp4').bind(0, '127.0.0.1');
    await Promise.all([
      new Promise((resolve) => server.once('listening', resolve)),
      new Promise((resolve) => udp.once('listening', resolve)),
    ]);
    onTestFinished(() => {
      server.close();
      udp.close();
    });
    let reached = 0;
    server.on('connection', () => reached++);
    udp.on('message', () => reached++);
    const { port } = server.address() as AddressInfo;
    const { call } = await start();
    expect(await call('attacks.js#connects', { input: port })).toHaveProperty('refused');
    expect(await call('attacks.js#sends', { input: udp.address().port })).toHaveProperty('refused');
    expect(await call('attacks.js#fetches', { input: `http://127.0.0.1:${port}/` })).toHaveProperty(
      'refused',
    );
    expect(reached).toBe(0);
  });

  test("only the environment variables that the manifest lists, and never the platform's own", async () => {
    const environment = {
      PATH: process.env.PATH,
      TZ: 'UTC',
      HOME: '/root',
      API_KEY: 'listed',
      OTHER: 'not listed',
      GATEWAY_JWT_SECRET: 'secret',
      SVC_TOKEN: 'secret',
      NODE_OPTIONS: '--max-http-header-size=1',
    };
    const platform = await startBackend({ sandbox, environment });
    const env = ['API_KEY', 'ABSENT', 'GATEWAY_JWT_SECRET', 'SVC_TOKEN', 'NODE_OPTIONS'];
    const seen = (await platform.call('attacks.js#environment', { permissions: { env } })) as {
      process: Record<string, string>;
      ctx: Record<string, string>;
    };
    const { PWD: _, ...own } = seen.process;
    expect([own, seen.ctx]).toEqual([{ TZ: 'UTC', API_KEY: 'listed' }, { API_KEY: 'listed' }]);
  });

  test('frames forged over the channel reach no other execution', async () => {
    const platform = await fresh({ maxProcesses: 2 });
    const executionId = 'victim';
    const victim = platform.call('handlers.ts#slowly', { plugin: 'good', executionId, input: 300 });
    expect(await platform.call('attacks.js#forges', { input: { executionId } })).toEqual({ ok: true });
    expect(await victim).toEqual({ waited: 300 });
  });

  test('a burst of platform calls is refused beyond what we hold', async () => {
    let underWay = 0;
    let most = 0;
    const slow = async () => {
      most = Math.max(most, ++underWay);
      await new Promise((resolve) => setTimeout(resolve, 20));
      underWay--;
      return {};
    };
    const { call } = await startBackend({ sandbox, services: { state: { get: slow } } });
    const { refused } = (await call('attacks.js#floodsCalls')) as { refused: number };
    expect(refused).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(64);
  });

  test('a symbolic link that leaves the plugin keeps it from starting', async () => {
    const platform = await start();
    const root = join(platform.dataDir, 'plugins', 'linked');
    await mkdir(root, { recursive: true });
    await writeFile(
      join(root, 'h.js'),
      "import fs from 'node:fs'; export const h = () => fs.readFileSync(import.meta.dirname + '/l', 'utf8');",
    );
    await writeFile(join(root, 'package.json'), '{"type": "module"}');
    await symlink('/etc/passwd', join(root, 'l'));
    const failure = await failureOf(platform.call('h.js#h', { plugin: 'linked', root }));
    expect([failure.code, failure.message]).toEqual([
      'SANDBOX_ERROR',
      expect.stringContaining(`${join(root, 'l')} points to /etc/passwd`),
    ]);
    await rm(join(root, 'l'));
    await writeFile(join(root, 'l'), 'its own file');
    expect(await platform.call('h.js#h', { plugin: 'linked', root })).toBe('its own file');
  });

  test.each(['/', '/proc', '/proc/1', '/sys', '/dev', '..', '../..'])(
    'a grant of %s is refused',
    async (path) => {
      const platform = await start();
      const root = join(platform.dataDir, 'plugins', 'greedy');
      await mkdir(root, { recursive: true });
      await writeFile(join(root, 'h.js'), 'exports.h = () => 1;');
      const permissions = { fs: { read: [path], write: [] } };
      const failure = await failureOf(platform.call('h.js#h', { plugin: 'greedy', root, permissions }));
      expect([failure.code, failure.message]).toEqual([
        'SANDBOX_ERROR',
        expect.stringContaining(`permissions.fs.read[0] "${path}"`),
      ]);
    },
  );

  test('processes end with the backend', async () => {
    const { backend, call } = await fresh();
    const hanging = failureOf(call('attacks.js#blocks', { timeoutMs: 60_000 }));
    await eventually(() => backend.stats()[0]?.running === 1);
    const { pids } = backend.stats()[0]!;
    await backend.close();
    expect((await hanging).message).toMatch(/the platform is stopping/);
    await eventually(() => pids.every((pid) => !isAlive(pid)));
    expect(pids.length).toBe(1);
  });
});

test.skipIf(!SANDBOXES.includes('bwrap'))(
  'under bubblewrap even a granted child process sees no other process',
  async () => {
    const { call } = await startBackend({ sandbox: 'bwrap' });
    const seen = (await call('attacks.js#processes', {
      permissions: { platform: { childProcess: true } },
    })) as {
      got: string[];
    };
    expect(seen.got[0]).toBe('1');
    expect(seen.got.length).toBeLessThanOrEqual(2);
  },
);

test('a plugin that may start programs only in a sandbox does not start without bubblewrap', async () => {
  const { call } = await startBackend({ sandbox: 'permission' });
  await expect(
    call('attacks.js#processes', { permissions: { platform: { childProcess: 'sandboxed' } } }),
  ).rejects.toMatchObject({ code: 'SANDBOX_ERROR', message: expect.stringContaining('"sandboxed"') });
});

test.skipIf(!SANDBOXES.includes('bwrap'))(
  'under bubblewrap it starts, and its programs run there',
  async () => {
    const { call } = await startBackend({ sandbox: 'bwrap' });
    const seen = (await call('attacks.js#processes', {
      permissions: { platform: { childProcess: 'sandboxed' } },
    })) as { got: string[] };
    expect(seen.got[0]).toBe('1');
  },
);

describe.skipIf(!SANDBOXES.includes('bwrap'))('files in memory under bubblewrap', () => {
  const permissions = { platform: { childProcess: true } };
  const fill = ({ call }: TestBackend, folder: string, megabytes: number) =>
    call('attacks.js#fills', { permissions, input: { folder, megabytes }, timeoutMs: 20_000 });

  test('nothing is written outside of /tmp and /dev/shm, which have a size', async () => {
    const platform = await startBackend({ sandbox: 'bwrap', config: { maxProcesses: 1 } });
    for (const folder of ['/', '/dev', '/usr'])
      expect(await fill(platform, folder, 1)).toMatchObject({ stderr: expect.stringContaining('Read-only') });
    expect(await fill(platform, '/dev/shm', 17)).toMatchObject({
      stderr: expect.stringContaining('No space'),
    });
    expect(await fill(platform, '/tmp', 65)).toMatchObject({ stderr: expect.stringContaining('No space') });
  });

  test('files there count as memory', async () => {
    const platform = await startBackend({ sandbox: 'bwrap', config: { maxProcesses: 1, memoryMb: 100 } });
    const error = await failureOf(fill(platform, '/tmp', 60));
    expect([error.code, error.message]).toEqual([
      'EXECUTION_ERROR',
      expect.stringMatching(/used \d+ MB of memory.*100 MB are allowed/),
    ]);
  });
});

test.each(SANDBOXES)(
  'under "%s" a folder to write to that does not exist is refused by name',
  async (sandbox) => {
    const { call, dataDir } = await startBackend({ sandbox });
    const folder = join(dataDir, '../not-there');
    const error = await failureOf(call('attacks.js#ok', { permissions: { fs: { write: [folder] } } }));
    expect([error.code, error.message]).toEqual([
      'SANDBOX_ERROR',
      expect.stringMatching(/permissions\.fs\.write names .*not-there, which does not exist\. Create it/),
    ]);
  },
);
