import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { SERVICE_NAMES } from '../../src/contracts/index.ts';
import { codeOf } from '../../src/kit/errors/errors.ts';
import { findSupervisor } from '../../src/supervisor/control-client.ts';
import { dataFolder } from '../../src/supervisor/data-folder.ts';
import {
  buildLauncher,
  occupyPort,
  type ServiceView,
  sharedPlatform,
  type TestPlatform,
  testPlatform,
} from '../cli/platform.ts';
import { isAlive } from '../support/is-alive.ts';

const SLOW = { timeout: 60_000 };
const POLL = { timeout: 15_000, interval: 100 };

beforeAll(buildLauncher, 300_000);

/** On a connection of its own: the status of the answer, or the code of the failure. */
function knockAt(url: string): Promise<string> {
  return new Promise((resolve) => {
    get(url, { agent: false }, (reply) => resolve(String(reply.resume().statusCode))).on('error', (error) =>
      resolve(codeOf(error) ?? error.message),
    );
  });
}

const health = async (service: ServiceView) =>
  (await fetch(service.url + (service.name === 'rest' ? '/api/v1/health' : '/health'))).status;

test(
  'up -d returns when all five are ready; status tells of each; down ends them all; the next start has the same keys',
  SLOW,
  async () => {
    const { svc, dataDir } = await testPlatform();
    const up = await svc('up', '-d');
    expect([up.code, up.json.ok, up.json.result.firstStart]).toEqual([0, true, true]);
    expect(up.stderr).toContain('webhooks provision');

    const { json } = await svc('status');
    const services: ServiceView[] = json.result.services;
    expect(
      services.map(({ name, state, restarts, lastExit }) => ({ name, state, restarts, lastExit })),
    ).toEqual(SERVICE_NAMES.map((name) => ({ name, state: 'ready', restarts: 0, lastExit: null })));
    expect(await Promise.all(services.map(health))).toEqual([200, 200, 200, 200, 200]);
    expect(json.result.sandbox.mode).toMatch(/^(?:bwrap|permission)$/);

    for (const file of ['keys.json', 'credentials.json'])
      expect((await stat(join(dataDir, file))).mode & 0o777).toBe(0o600);
    expect((await stat(dataDir)).mode & 0o777).toBe(0o700);

    const down = await svc('down');
    expect(down.json).toMatchObject({ ok: true, result: { stopped: true } });
    expect([...services.map(({ pid }) => pid), json.result.pid].filter(isAlive)).toEqual([]);
    const after = await svc('status');
    expect([after.code, after.json.result.running]).toEqual([0, false]);
    expect(new Set(after.json.result.services.map(({ state }: ServiceView) => state))).toEqual(
      new Set(['stopped']),
    );

    const keys = await readFile(join(dataDir, 'keys.json'), 'utf8');
    const again = await svc('up', '-d');
    expect([again.json.result.firstStart, again.stderr.includes('webhooks provision')]).toEqual([
      false,
      false,
    ]);
    expect(await readFile(join(dataDir, 'keys.json'), 'utf8')).toBe(keys);
  },
);

test('a daemon that does not drain holds up one Ctrl-C, and not a second', SLOW, async () => {
  const { start, service } = await testPlatform();
  const up = start('up');
  await expect.poll(() => up.stderr(), POLL).toContain('svc is running');
  const { pid } = await service('gateway');
  process.kill(pid, 'SIGSTOP');
  up.child.kill('SIGINT');
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(up.child.exitCode).toBeNull();
  up.child.kill('SIGINT');
  const { code, stderr } = await up.done;
  expect(code).toBe(130);
  expect(stderr).toContain('gateway killed');
  expect(isAlive(pid)).toBe(false);
});

test('Ctrl-C while services start stops them all, and none is taken for crashed', async () => {
  const { start, dataDir } = await testPlatform();
  const runFile = join(dataDir, 'run', 'supervisor.json');
  for (const waitMs of [0, 200, 400]) {
    const up = start('up');
    // Written just before the first service is started.
    await expect.poll(() => existsSync(runFile) || up.child.exitCode).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    up.child.kill('SIGINT');
    const { code, stderr } = await up.done;
    expect([waitMs, code]).toEqual([waitMs, 130]);
    expect(stderr).not.toContain('restarting in');
  }
});

test('restart takes up secrets that were changed, and refuses those that it cannot while all goes on', {
  timeout: 90_000,
}, async () => {
  const { svc, folder, dataDir } = await testPlatform();
  const [former, next, internal] = Array.from({ length: 3 }, () => randomBytes(48).toString('base64url'));
  const dotEnv = (...lines: string[]) => writeFile(join(folder, '.env'), lines.join('\n'));
  await dotEnv(`GATEWAY_JWT_SECRET=${former}`);
  await svc('up', '-d');
  const { token } = (await svc('tokens', 'mint', 'h1')).json.result;
  const whoHasIt = async () => (await svc('whoami', '--token', token)).code;
  await dotEnv(`GATEWAY_JWT_SECRET=${next}`, `GATEWAY_JWT_SECRET_PREVIOUS=${former}`);
  await svc('restart');
  expect(await whoHasIt()).toBe(0);
  await dotEnv(`GATEWAY_JWT_SECRET=${next}`);
  await svc('restart', 'gateway');
  expect(await whoHasIt()).toBe(4);

  // Services that go by different ones would refuse each other.
  await dotEnv(`GATEWAY_JWT_SECRET=${next}`, `GATEWAY_INTERNAL_SECRET=${internal}`);
  expect((await svc('restart', 'rest')).json.error.code).toBe('CONFLICT');
  const credentials = join(dataDir, 'credentials.json');
  const operator = await readFile(credentials, 'utf8');
  await rm(credentials);
  await svc('restart');
  expect((await svc('plugins', 'list')).code).toBe(0);
  expect(await readFile(credentials, 'utf8')).not.toBe(operator);

  await dotEnv(`GATEWAY_JWT_SECRET=${next}`, 'SVC_MASTER_KEY=short');
  expect((await svc('restart')).json.error.code).toBe('VALIDATION_ERROR');
  await dotEnv(`GATEWAY_JWT_SECRET=${next}`);
  await rm(join(dataDir, 'keys.json'));
  expect((await svc('restart')).json.error.code).toBe('STORE_ERROR');
  const { services } = (await svc('status')).json.result;
  expect(services.map(({ state }: ServiceView) => state)).toEqual(Array(5).fill('ready'));
});

test('when one service fails a restart of all, none is left running', SLOW, async () => {
  const { svc, folder } = await testPlatform();
  await svc('up', '-d');
  const config = JSON.parse(await readFile(join(folder, 'svc.config.json'), 'utf8'));
  await writeFile(
    join(folder, 'svc.config.json'),
    JSON.stringify({ ...config, rest: { port: await occupyPort() } }),
  );
  expect((await svc('restart')).code).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const states = (await svc('status')).json.result.services.map(
    ({ name, state }: ServiceView) => `${name} ${state}`,
  );
  expect(states.toSorted()).toEqual([
    'gateway stopped',
    'marketplace stopped',
    'rest failed',
    'state stopped',
    'workflow stopped',
  ]);
  const up = await svc('up', '-d');
  expect([up.code, up.json.error]).toEqual([
    1,
    expect.objectContaining({
      code: 'SERVICE_UNAVAILABLE',
      message: expect.stringContaining('rest (failed)'),
      details: expect.objectContaining({ hint: expect.stringContaining('svc restart') }),
    }),
  ]);
});

test(
  'a port that is taken is told with its owner and the flag that mends it; nothing is left running',
  SLOW,
  async () => {
    const { svc } = await testPlatform();
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

test(
  'ports of another project are told with its folder, and services that never stood as no late ones',
  SLOW,
  async () => {
    const [one, other] = [await testPlatform(), await testPlatform()];
    const { services } = (await one.svc('up', '-d')).json.result;
    const ports = services.flatMap(({ name, port }: ServiceView) => ['--port', `${name}=${port}`]);
    const { json, stderr } = await other.svc('up', '-d', ...ports);
    expect(json.error.message).toContain(`(svc supervisor, started in ${await realpath(one.folder)})`);
    expect(stderr).not.toContain('killed');
  },
);

test('two starts at once make one platform; a third in the foreground is refused', SLOW, async () => {
  const { svc, start } = await testPlatform();
  const both = await Promise.all([svc('up', '-d'), svc('up', '-d')]);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  expect(new Set(both.map(({ json }) => json.result.pid)).size).toBe(1);
  expect(both.map(({ json }) => json.result.alreadyRunning).toSorted()).toEqual([false, true]);

  const third = await start('up').done;
  expect(third.code).toBe(1);
  expect(third.stderr).toContain(`svc is already running on`);
  expect(third.stderr).toContain(`pid ${both[0]!.json.result.pid}`);
});

test(
  'daemons end by themselves when their supervisor is killed, and the next up starts anew',
  SLOW,
  async () => {
    const { svc } = await testPlatform();
    const first = (await svc('up', '-d')).json.result;
    process.kill(first.pid, 'SIGKILL');
    const second = (await svc('up', '-d')).json.result;
    expect(second).toMatchObject({ alreadyRunning: false, firstStart: false });
    expect(first.services.map(({ pid }: ServiceView) => pid).filter(isAlive)).toEqual([]);
    expect(second.services.every(({ state }: ServiceView) => state === 'ready')).toBe(true);
  },
);

test(
  'in the foreground logs go to stdout as records, and one Ctrl-C drains in reverse order',
  SLOW,
  async () => {
    const { start, svc } = await testPlatform();
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
  },
);

test('a start that is called off leaves nothing behind', SLOW, async () => {
  const { start, svc } = await testPlatform();
  const up = start('up', '-d');
  await expect.poll(() => up.stderr(), POLL).toContain('ready after');
  up.child.kill('SIGKILL');
  await up.done;
  await expect.poll(async () => (await svc('status')).json.result.running, POLL).toBe(false);
});

test('a data folder whose path is too long for a socket still works', SLOW, async () => {
  const { folder, start } = await testPlatform();
  const home = join(folder, 'x'.repeat(120));
  await mkdir(home);
  await chmod(home, 0o755);
  const long = await testPlatform({}, { SVC_HOME: home });
  expect((await long.svc('up', '-d')).code).toBe(0);
  const { socket } = JSON.parse(await readFile(join(home, 'run', 'supervisor.json'), 'utf8'));
  expect(socket.length).toBeLessThan(104);
  expect((await stat(join(socket, '..'))).mode & 0o777).toBe(0o700);
  expect((await stat(home)).mode & 0o777).toBe(0o700);
  expect((await long.svc('down')).json.result.stopped).toBe(true);
  await expect(stat(socket)).rejects.toThrow('ENOENT');
  expect((await start('status').done).code).toBe(0);
});

test(
  'logs chooses by level, request, age and words, from the store and from the files alike',
  SLOW,
  async () => {
    const { svc, start, service, dataDir } = await testPlatform();
    await svc('up', '-d');
    const { url } = await service('gateway');
    await fetch(`${url}/health`, { headers: { 'x-request-id': 'wanted' } });
    await fetch(`${url}/api/v1/logs`, { headers: { 'x-request-id': 'other' } });
    const shown = async (...args: string[]): Promise<string[]> => {
      const { stdout } = await start('logs', '--json', '-n', '200', ...args).done;
      return stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line).message);
    };
    await expect.poll(() => shown('--request-id', 'other'), POLL).toContain('GET /api/v1/* 401');
    async function check(): Promise<void> {
      expect(await shown('--request-id', 'wanted')).toEqual(['GET /health 200']);
      expect(await shown('--search', 'health 200', '--since', '1h', 'gateway')).toContain('GET /health 200');
      expect(await shown('--request-id', 'wanted', 'rest')).toEqual([]);
      expect(await shown('--since', new Date(Date.now() + 60_000).toISOString())).toEqual([]);
      expect(await shown('--level', 'error', '--request-id', 'wanted')).toEqual([]);
    }
    await check();
    await svc('down');
    // Nobody answers any more: the files do.
    await check();
    expect(await readFile(join(dataDir, 'logs', 'gateway.log'), 'utf8')).not.toContain('"schema"');
  },
);

describe('one platform, over and over', () => {
  const secret = 'a-jwt-secret-of-more-than-thirty-two-bytes-in-the-environment';
  let platform: Awaited<ReturnType<typeof sharedPlatform>>;
  beforeAll(async () => {
    platform = await sharedPlatform({}, { GATEWAY_JWT_SECRET: secret });
    await platform.svc('up', '-d');
    return platform.end;
  }, 60_000);
  const svc: TestPlatform['svc'] = (...args) => platform.svc(...args);
  const service: TestPlatform['service'] = (name) => platform.service(name);

  test('secrets stand neither in arguments nor in the environment of the daemons', SLOW, async () => {
    const { pid } = await service('gateway');
    const { masterKey, internalSecret } = JSON.parse(
      await readFile(join(platform.dataDir, 'keys.json'), 'utf8'),
    );
    for (const file of ['cmdline', 'environ']) {
      const text = await readFile(`/proc/${pid}/${file}`, 'utf8');
      for (const value of [secret, masterKey, internalSecret]) expect(text).not.toContain(value);
    }
  });

  test('the port stays open over a restart: whoever connects waits, and is answered', SLOW, async () => {
    const { pid } = await service('gateway');
    const answers = await knockDuring(async () => expect((await svc('restart')).code).toBe(0));
    expect([isAlive(pid), answers]).toEqual([false, new Set(['200'])]);
  });

  /** How those are answered who connect again and again meanwhile. */
  async function knockDuring(work: () => Promise<void>): Promise<Set<string>> {
    const { url } = await service('gateway');
    const answers: Promise<string>[] = [];
    const knock = setInterval(() => answers.push(knockAt(`${url}/health`)), 20);
    await work().finally(() => clearInterval(knock));
    expect(answers.length).toBeGreaterThan(10);
    return new Set(await Promise.all(answers));
  }

  test('logs shows the latest records of the chosen services in order, and follows them', SLOW, async () => {
    const { url } = await service('gateway');
    await fetch(`${url}/health`, { headers: { 'x-request-id': 'first-request' } });
    await expect
      .poll(async () => (await platform.start('logs', 'gateway', '--json').done).stdout, POLL)
      .toContain('first-request');
    const lines = (await platform.start('logs', '--json', '-n', '5').done).stdout.trim().split('\n');
    const times = lines.map((line) => JSON.parse(line).time);
    expect([times.length, times]).toEqual([5, times.toSorted((a, b) => a - b)]);

    for (const extra of [[], ['--raw']]) {
      const following = platform.start('logs', '-f', '--lines', '0', 'gateway', ...extra);
      await expect
        .poll(async () => {
          await fetch(`${url}/health`, { headers: { 'x-request-id': 'second-request' } });
          return following.stdout();
        }, POLL)
        .toContain('requestId=second-request');
      expect(following.stdout()).not.toContain('first-request');
      following.child.kill('SIGINT');
      await following.done;
    }
  });

  test('a killed daemon comes back on its port, and the others learn nothing of it', SLOW, async () => {
    const before = await service('gateway');
    const answers = await knockDuring(async () => {
      process.kill(before.pid, 'SIGKILL');
      await expect.poll(async () => (await service('gateway')).restarts, POLL).toBe(1);
      await expect.poll(async () => (await service('gateway')).state, POLL).toBe('ready');
    });
    expect(answers).not.toContain('ECONNREFUSED');
    const after = await service('gateway');
    expect(after).toMatchObject({
      port: before.port,
      lastExit: { signal: 'SIGKILL', reason: 'signal SIGKILL' },
    });
    expect(after.pid).not.toBe(before.pid);
    expect((await service('state')).restarts).toBe(0);
  });

  test('a crash loop is stopped with its reason and last lines, and restart mends it', SLOW, async () => {
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
    expect(await knockAt(`${url}/health`)).toBe('ECONNREFUSED');
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

  test(
    'restart of one service leaves the others alone; restart of all gives new processes',
    SLOW,
    async () => {
      const pids = async () => (await svc('status')).json.result.services.map(({ pid }: ServiceView) => pid);
      const first = await pids();
      await svc('restart', 'workflow');
      const second = await pids();
      expect(second.map((pid: number, index: number) => pid === first[index])).toEqual([
        true,
        true,
        false,
        true,
        true,
      ]);
      await svc('restart');
      expect((await pids()).filter((pid: number) => second.includes(pid))).toEqual([]);
    },
  );

  test('a disk that takes no note of a new process ends none', SLOW, async () => {
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

  test('restarts of one service at once follow each other', SLOW, async () => {
    const replies = await Promise.all([
      svc('restart', 'state'),
      svc('restart', 'state'),
      svc('restart', 'state'),
    ]);
    expect(replies.map(({ code }) => code)).toEqual([0, 0, 0]);
    const pids = replies.map(({ json }) => json.result.services[0].pid);
    expect(pids.filter(isAlive)).toEqual([(await service('state')).pid]);
  });

  test('restart reads the config anew, and refuses a faulty one while all goes on', SLOW, async () => {
    const config = JSON.parse(await readFile(join(platform.folder, 'svc.config.json'), 'utf8'));
    const port = await occupyPort();
    await writeFile(join(platform.folder, 'svc.config.json'), JSON.stringify({ ...config, gatway: {} }));
    const refused = await svc('restart', 'gateway');
    expect([refused.code, refused.json.error.code]).toEqual([1, 'VALIDATION_ERROR']);
    await writeFile(join(platform.folder, 'svc.config.json'), JSON.stringify({ ...config, rest: { port } }));
    const clash = await svc('restart', 'rest');
    expect(clash.json.error).toMatchObject({ code: 'CONFLICT', details: { owner: { pid: process.pid } } });
    expect([(await service('gateway')).state, (await service('rest')).state]).toEqual(['ready', 'failed']);
  });
});
