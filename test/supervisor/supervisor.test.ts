import { chmod, mkdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { SERVICE_NAMES } from '../../src/contracts/index.ts';
import { codeOf } from '../../src/kit/errors/errors.ts';
import { findSupervisor } from '../../src/supervisor/control-client.ts';
import { dataFolder } from '../../src/supervisor/data-folder.ts';
import {
  occupyPort,
  type ServiceView,
  sharedPlatform,
  type TestPlatform,
  testPlatform,
  withStandIns,
} from '../cli/platform.ts';
import { isAlive } from '../support/is-alive.ts';

// Real supervisors, commands and signals. The services are stand-ins; platform.test.ts starts the real ones.

const SLOW = { timeout: 60_000 };
const POLL = { timeout: 15_000, interval: 100 };

const secret = 'a-jwt-secret-of-more-than-thirty-two-bytes-in-the-environment';
let platform: Awaited<ReturnType<typeof sharedPlatform>>;
beforeAll(async () => {
  // As for a user: what was compiled is kept in the data folder.
  const env = { GATEWAY_JWT_SECRET: secret, NODE_COMPILE_CACHE: undefined };
  platform = await sharedPlatform(...withStandIns({ env }));
  expect(await platform.svc('up', '-d')).toMatchObject({ code: 0 });
  return platform.end;
}, 60_000);
const svc: TestPlatform['svc'] = (...args) => platform.svc(...args);
const service: TestPlatform['service'] = (name) => platform.service(name);

const statesOf = async ({ svc }: TestPlatform): Promise<string[]> =>
  (await svc('status')).json.result.services.map(({ name, state }: ServiceView) => `${name} ${state}`);

test('secrets are neither in the arguments nor in the environment of the services', async () => {
  const { pid } = await service('gateway');
  const keys = JSON.parse(await readFile(join(platform.dataDir, 'keys.json'), 'utf8'));
  for (const file of ['cmdline', 'environ']) {
    const text = await readFile(`/proc/${pid}/${file}`, 'utf8');
    for (const value of [secret, keys.masterKey, keys.internalSecret]) expect(text).not.toContain(value);
  }
});

test('compiled code is cached in a folder that only its user can read', async () => {
  expect((await stat(join(platform.dataDir, 'run', 'compiled'))).mode & 0o777).toBe(0o700);
});

test(
  'ports of another project are told with its folder, and services that never stood as no late ones',
  SLOW,
  async () => {
    const other = await testPlatform(...withStandIns());
    const { services } = (await svc('status')).json.result;
    const ports = services.flatMap(({ name, port }: ServiceView) => ['--port', `${name}=${port}`]);
    const { json, stderr } = await other.svc('up', '-d', ...ports);
    expect(json.error.message).toContain(`(svc supervisor, started in ${await realpath(platform.folder)})`);
    expect(stderr).not.toContain('killed');
  },
);

test('a failed write of the run file stops no service', SLOW, async () => {
  const folder = dataFolder(platform.dataDir);
  const supervisor = findSupervisor(folder);
  if (!supervisor) throw new Error('no supervisor runs');
  const { pid } = supervisor;
  // No file can take the place of a folder with something in it.
  await rename(folder.runFile, `${folder.runFile}.aside`);
  await mkdir(join(folder.runFile, 'in the way'), { recursive: true });
  const { services } = await supervisor.restart('state');
  expect(services.find(({ name }) => name === 'state')?.state).toBe('ready');
  await rm(folder.runFile, { recursive: true });
  await rename(`${folder.runFile}.aside`, folder.runFile);
  const log = () => readFile(join(platform.dataDir, 'logs', 'supervisor.log'), 'utf8');
  await expect.poll(log, POLL).toContain('The run file could not be written');
  expect((await svc('status')).json.result.pid).toBe(pid);
});

test('concurrent restarts of one service run one after the other', SLOW, async () => {
  const replies = await Promise.all([
    svc('restart', 'state'),
    svc('restart', 'state'),
    svc('restart', 'state'),
  ]);
  expect(replies.map(({ code }) => code)).toEqual([0, 0, 0]);
  const pids = replies.map(({ json }) => json.result.services[0].pid);
  expect(pids.filter(isAlive)).toEqual([(await service('state')).pid]);
});

test('a crash loop is stopped with its reason and last lines, and restart recovers it', SLOW, async () => {
  const { url } = await service('state');
  for (let crashes = 0; crashes < 5; crashes++) {
    const { pid } = await service('state');
    process.kill(pid, 'SIGKILL');
    await expect
      .poll(async () => {
        const now = await service('state');
        return now.state === 'failed' || (now.state === 'ready' && now.pid !== pid);
      }, POLL)
      .toBe(true);
  }
  expect(await service('state')).toMatchObject({ state: 'failed', restarts: 4, pid: null });
  const refused = await fetch(`${url}/health`).catch((error: Error) => codeOf(error.cause));
  expect(refused).toBe('ECONNREFUSED');
  const log = await readFile(join(platform.dataDir, 'logs', 'supervisor.log'), 'utf8');
  const record = JSON.parse(
    log
      .trim()
      .split('\n')
      .findLast((line) => line.includes('CRASH_LOOP')) ?? '{}',
  );
  expect(record).toMatchObject({
    level: 'fatal',
    evidence: { service: 'state', reason: 'signal SIGKILL' },
  });
  expect(record.evidence.lastLines.length).toBeGreaterThan(0);

  const restarted = await svc('restart', 'state');
  expect([restarted.code, (await service('state')).state]).toEqual([0, 'ready']);
});

describe('with a changed config', () => {
  const configFile = () => join(platform.folder, 'svc.config.json');
  const change = async (settings: object) =>
    writeFile(
      configFile(),
      JSON.stringify({ ...JSON.parse(await readFile(configFile(), 'utf8')), ...settings }),
    );

  test(
    'restart reads the config again, and refuses an invalid config while all services keep running',
    SLOW,
    async () => {
      const config = await readFile(configFile(), 'utf8');
      await change({ gatway: {} });
      const refused = await svc('restart', 'gateway');
      expect([refused.code, refused.json.error.code]).toEqual([1, 'VALIDATION_ERROR']);
      await writeFile(configFile(), config);
      await change({ rest: { port: await occupyPort() } });
      const clash = await svc('restart', 'rest');
      expect(clash.json.error).toMatchObject({ code: 'CONFLICT', details: { owner: { pid: process.pid } } });
      expect([(await service('gateway')).state, (await service('rest')).state]).toEqual(['ready', 'failed']);
    },
  );

  test('when one service fails during a restart of all, no service is left running', SLOW, async () => {
    await change({ rest: { port: await occupyPort() } });
    expect((await svc('restart')).code).toBe(1);
    // Waits for three seconds, in which nothing may start again.
    const up = await svc('up', '-d');
    expect([up.code, up.json.error]).toEqual([
      1,
      expect.objectContaining({
        code: 'SERVICE_UNAVAILABLE',
        message: expect.stringContaining('rest (failed)'),
        details: expect.objectContaining({ hint: expect.stringContaining('svc restart') }),
      }),
    ]);
    expect((await statesOf(platform)).toSorted()).toEqual([
      'gateway stopped',
      'marketplace stopped',
      'rest failed',
      'state stopped',
      'workflow stopped',
    ]);
  });
});

test('two concurrent starts create one platform; a third in the foreground is refused', SLOW, async () => {
  const { svc, start, dataDir } = await testPlatform(...withStandIns());
  const both = await Promise.all([svc('up', '-d'), svc('up', '-d')]);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  expect(new Set(both.map(({ json }) => json.result.pid)).size).toBe(1);
  expect(both.map(({ json }) => json.result.alreadyRunning).toSorted()).toEqual([false, true]);

  const third = await start('up').done;
  expect(third.code).toBe(1);
  expect(third.stderr).toContain(`svc is already running on`);
  expect(third.stderr).toContain(`pid ${both[0]!.json.result.pid}`);

  // The next start has the same keys.
  const keys = await readFile(join(dataDir, 'keys.json'), 'utf8');
  await svc('down');
  const again = await svc('up', '-d');
  expect([again.json.result.firstStart, again.stderr.includes('webhooks provision')]).toEqual([false, false]);
  expect(await readFile(join(dataDir, 'keys.json'), 'utf8')).toBe(keys);
});

test(
  'a port in use is reported with its owner and the flag to set; no process is left running',
  SLOW,
  async () => {
    const { svc } = await testPlatform(...withStandIns({ real: ['rest'] }));
    const port = await occupyPort();
    const { code, json } = await svc('up', '-d', '--port', `rest=${port}`);
    expect(code).toBe(1);
    expect(json.error).toMatchObject({
      code: 'CONFLICT',
      details: { service: 'rest', owner: { pid: process.pid } },
    });
    expect(json.error.message).toContain(`Port ${port}`);
    expect(json.error.details.hint).toContain('--port rest=');
    expect((await svc('status')).json.result.running).toBe(false);
  },
);

test('a cancelled start leaves no processes or files', SLOW, async () => {
  // The others are ready while this one still starts.
  const { start, svc } = await testPlatform(...withStandIns({ real: ['workflow'] }));
  const up = start('up', '-d');
  await expect.poll(() => up.stderr(), { ...POLL, interval: 10 }).toContain('ready after');
  up.child.kill('SIGKILL');
  await up.done;
  await expect.poll(async () => (await svc('status')).json.result.running, POLL).toBe(false);
});

test('a data folder whose path is too long for a socket still works', SLOW, async () => {
  const { folder, start } = await testPlatform();
  const home = join(folder, 'x'.repeat(120));
  await mkdir(home);
  await chmod(home, 0o755);
  const long = await testPlatform(...withStandIns({ env: { SVC_HOME: home } }));
  expect((await long.svc('up', '-d')).code).toBe(0);
  const { socket } = JSON.parse(await readFile(join(home, 'run', 'supervisor.json'), 'utf8'));
  expect(socket.length).toBeLessThan(104);
  expect((await stat(join(socket, '..'))).mode & 0o777).toBe(0o700);
  expect((await stat(home)).mode & 0o777).toBe(0o700);
  expect((await long.svc('down')).json.result.stopped).toBe(true);
  await expect(stat(socket)).rejects.toThrow('ENOENT');
  expect((await start('status').done).code).toBe(0);
});

describe('in the foreground', () => {
  test('logs go to stdout as records, and one Ctrl-C drains in reverse order', SLOW, async () => {
    const { start, svc } = await testPlatform(...withStandIns());
    const up = start('up');
    await expect.poll(() => up.stderr(), POLL).toContain('svc is running');
    const { pid } = (await svc('status')).json.result;
    expect(pid).toBe(up.child.pid);
    up.child.kill('SIGINT');
    const { code, stdout, stderr } = await up.done;
    expect(code).toBe(130);
    for (const line of stdout.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('serviceId');
    const stopped = [...stderr.matchAll(/^■ (\w+) stopped/gm)].map(([, name]) => name);
    expect(stopped).toEqual(SERVICE_NAMES.toReversed());
    expect((await svc('status')).json.result.running).toBe(false);
  });

  test('a service that does not drain delays one Ctrl-C, but not a second', SLOW, async () => {
    const { start, service } = await testPlatform(...withStandIns());
    const up = start('up');
    await expect.poll(() => up.stderr(), POLL).toContain('svc is running');
    const { pid } = await service('gateway');
    process.kill(pid, 'SIGSTOP');
    up.child.kill('SIGINT');
    // Signals within a quarter of a second count as one.
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(up.child.exitCode).toBeNull();
    up.child.kill('SIGINT');
    const { code, stderr } = await up.done;
    expect(code).toBe(130);
    expect(stderr).toContain('gateway killed');
    expect(isAlive(pid)).toBe(false);
  });

  test('Ctrl-C while services start stops them all, and none is reported as crashed', async () => {
    // The others are ready while this one still starts.
    const { start, dataDir } = await testPlatform(...withStandIns({ real: ['workflow'] }));
    const moments: Record<string, (stderr: string) => boolean> = {
      // The run file is written just before the first service is started.
      'before the first service': () => findSupervisor(dataFolder(dataDir)) !== null,
      'one service is ready': (stderr) => stderr.includes('ready after'),
      'four services are ready': (stderr) => stderr.match(/ready after/g)?.length === 4,
    };
    for (const [moment, isReached] of Object.entries(moments)) {
      const up = start('up');
      await expect
        .poll(() => isReached(up.stderr()) || up.child.exitCode, { ...POLL, interval: 5 })
        .toBe(true);
      up.child.kill('SIGINT');
      const { code, stderr } = await up.done;
      expect([moment, code]).toEqual([moment, 130]);
      expect(stderr).not.toContain('restarting in');
    }
  });
});
