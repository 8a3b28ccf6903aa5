import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { get } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { SERVICE_NAMES } from '../../src/contracts/index.ts';
import { codeOf } from '../../src/kit/errors/errors.ts';
import { buildLauncher, type CliRun, type ServiceView, sharedPlatform } from '../cli/platform.ts';
import { isAlive } from '../support/is-alive.ts';

// The five real services, started twice: each test continues with the platform of the one before.

const SLOW = { timeout: 60_000 };
const POLL = { timeout: 15_000, interval: 100 };

let platform: Awaited<ReturnType<typeof sharedPlatform>>;
beforeAll(async () => {
  await buildLauncher();
  platform = await sharedPlatform();
  return platform.end;
}, 300_000);

const BAD_PLUGIN = '{"schema": "svc.plugin/3", "id": "bad"}';
const [former, next, internal] = Array.from({ length: 3 }, () => randomBytes(48).toString('base64url'));
const dotEnv = (...lines: string[]) => writeFile(join(platform.folder, '.env'), lines.join('\n'));
const keysFile = () => join(platform.dataDir, 'keys.json');

/** Status code of a request on a connection of its own, or the code of its failure. */
function requestOnce(url: string): Promise<string> {
  return new Promise((resolve) => {
    get(url, { agent: false }, (reply) => resolve(String(reply.resume().statusCode))).on('error', (error) =>
      resolve(codeOf(error) ?? error.message),
    );
  });
}

/** The different results of requests to the gateway that are sent while `work` runs. */
async function requestsDuring(work: () => Promise<void>): Promise<Set<string>> {
  const { url } = await platform.service('gateway');
  const results: Promise<string>[] = [];
  const sending = setInterval(() => results.push(requestOnce(`${url}/health`)), 20);
  await work().finally(() => clearInterval(sending));
  expect(results.length).toBeGreaterThan(10);
  return new Set(await Promise.all(results));
}

const pids = async (): Promise<number[]> =>
  (await platform.svc('status')).json.result.services.map(({ pid }: ServiceView) => pid);

const health = async (service: ServiceView) =>
  (await fetch(service.url + (service.name === 'rest' ? '/api/v1/health' : '/health'))).status;

describe('the first start', () => {
  let up: CliRun;
  beforeAll(async () => {
    await dotEnv(`GATEWAY_JWT_SECRET=${former}`);
    await mkdir(join(platform.folder, 'plugins', 'bad'), { recursive: true });
    await writeFile(join(platform.folder, 'plugins', 'bad', 'svc.plugin.json'), BAD_PLUGIN);
    up = await platform.svc('up', '-d');
  }, 60_000);

  test('up -d returns when all five services are ready; status shows each of them', SLOW, async () => {
    const { svc, dataDir } = platform;
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
  });

  test('up -d names plugins that failed to load, and status shows the sandbox right after the first start', async () => {
    expect(up.json.result.brokenPlugins).toEqual([{ id: 'bad', message: expect.any(String) }]);
    expect(up.stderr).toContain('Plugin bad failed to load: ');
    const status = await platform.svc('status');
    expect(status.json.result.plugins).toMatchObject({ broken: up.json.result.brokenPlugins });
    expect(up.json.result.sandbox.mode).toMatch(/^(?:bwrap|permission)$/);
    const again = await platform.start('up', '-d').done;
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('svc is already running')]);
  });

  test('logs shows the latest records of the chosen services in order, and follows them', SLOW, async () => {
    const { svc, start } = platform;
    const { url } = await platform.service('gateway');
    await fetch(`${url}/health`, { headers: { 'x-request-id': 'first-request' } });
    await expect.poll(async () => (await svc('logs', 'gateway')).stdout, POLL).toContain('first-request');
    const lines = (await start('logs', '--json', '-n', '5').done).stdout.trim().split('\n');
    const times = lines.map((line) => JSON.parse(line).time);
    expect([times.length, times]).toEqual([5, times.toSorted((a, b) => a - b)]);

    for (const extra of [[], ['--raw']]) {
      const following = start('logs', '-f', '--lines', '0', 'gateway', ...extra);
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

  test(
    'a killed service is restarted on its port, and the other services are not affected',
    SLOW,
    async () => {
      const { service } = platform;
      const before = await service('gateway');
      const results = await requestsDuring(async () => {
        process.kill(before.pid, 'SIGKILL');
        await expect.poll(async () => (await service('gateway')).restarts, POLL).toBe(1);
        await expect.poll(async () => (await service('gateway')).state, POLL).toBe('ready');
      });
      expect(results).not.toContain('ECONNREFUSED');
      const after = await service('gateway');
      expect(after).toMatchObject({
        port: before.port,
        lastExit: { signal: 'SIGKILL', reason: 'signal SIGKILL' },
      });
      expect(after.pid).not.toBe(before.pid);
      expect((await service('state')).restarts).toBe(0);
    },
  );

  test('restart applies changed secrets in new processes; the port stays open, and waiting clients are answered', {
    timeout: 90_000,
  }, async () => {
    const { svc, dataDir } = platform;
    const { token } = (await svc('tokens', 'mint', 'h1')).json.result;
    const whoami = async () => (await svc('whoami', '--token', token)).code;
    const credentials = join(dataDir, 'credentials.json');
    const operator = await readFile(credentials, 'utf8');
    const first = await pids();

    await dotEnv(`GATEWAY_JWT_SECRET=${next}`, `GATEWAY_JWT_SECRET_PREVIOUS=${former}`);
    await rm(credentials);
    const results = await requestsDuring(async () => expect((await svc('restart')).code).toBe(0));
    expect([first.filter(isAlive), results]).toEqual([[], new Set(['200'])]);
    expect(await whoami()).toBe(0);
    expect((await svc('plugins', 'list')).code).toBe(0);
    expect(await readFile(credentials, 'utf8')).not.toBe(operator);

    const second = await pids();
    await dotEnv(`GATEWAY_JWT_SECRET=${next}`);
    await svc('restart', 'gateway');
    expect(await whoami()).toBe(4);
    const isSame = (await pids()).map((pid, index) => pid === second[index]);
    expect(isSame).toEqual(SERVICE_NAMES.map((name) => name !== 'gateway'));
  });

  test('restart refuses secrets that it cannot apply, and all services keep running', async () => {
    const { svc } = platform;
    // Services that go by different ones would refuse each other.
    await dotEnv(`GATEWAY_JWT_SECRET=${next}`, `GATEWAY_INTERNAL_SECRET=${internal}`);
    expect((await svc('restart', 'rest')).json.error.code).toBe('CONFLICT');
    await dotEnv(`GATEWAY_JWT_SECRET=${next}`, 'SVC_MASTER_KEY=short');
    expect((await svc('restart')).json.error.code).toBe('VALIDATION_ERROR');
    await dotEnv(`GATEWAY_JWT_SECRET=${next}`);
    const keys = await readFile(keysFile());
    await rm(keysFile());
    expect((await svc('restart')).json.error.code).toBe('STORE_ERROR');
    await writeFile(keysFile(), keys, { mode: 0o600 });
    const { services } = (await svc('status')).json.result;
    expect(services.map(({ state }: ServiceView) => state)).toEqual(Array(5).fill('ready'));
  });
});

describe('the start after a kill of the supervisor', () => {
  let orphans: number[];
  let keys: string;
  let up: CliRun;
  beforeAll(async () => {
    const config = join(platform.folder, 'svc.config.json');
    const settings = JSON.parse(await readFile(config, 'utf8'));
    await writeFile(config, JSON.stringify({ ...settings, auth: { mode: 'required' } }));
    keys = await readFile(keysFile(), 'utf8');
    const { pid, services } = (await platform.svc('status')).json.result;
    orphans = services.map((service: ServiceView) => service.pid);
    process.kill(pid, 'SIGKILL');
    up = await platform.svc('up', '-d');
  }, 60_000);

  test('services exit when their supervisor is killed, and the next svc up starts new ones', async () => {
    const { result } = up.json;
    expect(result).toMatchObject({ alreadyRunning: false, firstStart: false });
    expect(orphans.filter(isAlive)).toEqual([]);
    expect(result.services.every(({ state }: ServiceView) => state === 'ready')).toBe(true);
  });

  test('a later start uses the same keys and prints no first steps', async () => {
    expect(up.stderr).not.toContain('webhooks provision');
    expect(await readFile(keysFile(), 'utf8')).toBe(keys);
  });

  test('broken plugins are reported even if every call requires an identity', () => {
    expect(up.json.result.brokenPlugins).toHaveLength(1);
  });

  test('down stops all services; logs filters stored records and log files by level, request, age and words', {
    timeout: 60_000,
  }, async () => {
    const { svc, start, service, dataDir } = platform;
    const { url } = await service('gateway');
    await fetch(`${url}/health`, { headers: { 'x-request-id': 'wanted' } });
    await fetch(`${url}/api/v1/logs`, { headers: { 'x-request-id': 'other' } });
    const messages = (text: string): string[] =>
      text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line).message);
    const shown = async (...args: string[]) => messages((await svc('logs', '-n', '200', ...args)).stdout);
    await expect.poll(() => shown('--request-id', 'other'), POLL).toContain('GET /api/v1/* 401');
    async function check(): Promise<void> {
      expect(await shown('--request-id', 'wanted')).toEqual(['GET /health 200']);
      expect(await shown('--search', 'health 200', '--since', '1h', 'gateway')).toContain('GET /health 200');
      expect(await shown('--request-id', 'wanted', 'rest')).toEqual([]);
      expect(await shown('--since', new Date(Date.now() + 60_000).toISOString())).toEqual([]);
      expect(await shown('--level', 'error', '--request-id', 'wanted')).toEqual([]);
    }
    await check();

    const { pid } = (await svc('status')).json.result;
    const running = [...(await pids()), pid];
    expect((await svc('down')).json).toMatchObject({ ok: true, result: { stopped: true } });
    expect(running.filter(isAlive)).toEqual([]);
    const after = await svc('status');
    expect([after.code, after.json.result.running]).toEqual([0, false]);
    expect(new Set(after.json.result.services.map(({ state }: ServiceView) => state))).toEqual(
      new Set(['stopped']),
    );

    // The gateway does not answer any more: the files do.
    await check();
    const { stdout } = await start('logs', '--json', '-n', '200', '--request-id', 'wanted').done;
    expect(messages(stdout)).toEqual(['GET /health 200']);
    expect(await readFile(join(dataDir, 'logs', 'gateway.log'), 'utf8')).not.toContain('"schema"');
  });
});
