import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Finding } from '../../src/cli/commands/doctor/check.ts';
import { tempDir } from '../support/daemon.ts';
import { connectRaw, registerTestHost } from '../support/host-agent.ts';
import { FREE_PORTS, freePort } from '../support/ports.ts';
import { occupyPort, sharedPlatform } from './platform.ts';
import { runSvc } from './svc.ts';

const SLOW = { timeout: 60_000 };

async function project(config: Record<string, unknown> = {}): Promise<string> {
  const folder = await tempDir();
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify({ ...FREE_PORTS, ...config }));
  return folder;
}

async function writePlugin(folder: string, name: string, files: Record<string, string>): Promise<void> {
  const target = join(folder, 'plugins', name);
  await mkdir(target, { recursive: true });
  for (const [file, text] of Object.entries(files)) await writeFile(join(target, file), text);
}

async function doctor(folder: string, flags: string[] = [], env: Record<string, string> = {}) {
  const { code, json } = await runSvc(folder, ['doctor', '--json', ...flags], env);
  const checks: Finding[] = json.result.checks;
  const of = (name: string): Finding[] => checks.filter((check) => check.name === name);
  return {
    code,
    json,
    checks,
    of,
    only: (name: string) =>
      of(name)
        .map(({ status, message }) => `${status}: ${message}`)
        .join('\n'),
  };
}

test('absent files are not reported as private, and placeholder secrets not as secrets', SLOW, async () => {
  const folder = await project();
  // biome-ignore lint/suspicious/noTemplateCurlyInString: what a tool that does not know the form leaves there.
  await writeFile(join(folder, '.env'), 'GATEWAY_JWT_SECRET=${GATEWAY_JWT_SECRET_OF_PRODUCTION:-}\n', {
    mode: 0o600,
  });
  const { only } = await doctor(folder);
  expect(only('files')).toBe('ok: .env is private to this user');
  expect(only('secrets')).toBe('warn: GATEWAY_JWT_SECRET looks like an example value.');
});

test('a sound project passes, and every check reports its result', SLOW, async () => {
  const { code, json, checks, only } = await doctor(await project());
  expect([code, json.ok, json.result.failed]).toEqual([0, true, 0]);
  expect(new Set(checks.map(({ name }) => name))).toEqual(
    new Set([
      'node',
      'config',
      'disk',
      'clock',
      'files',
      'credentials',
      'stores',
      'secrets',
      'supervisor',
      'ports',
      'sandbox',
      'engine',
      'upstreams',
      'plugins',
      'workflows',
      'vendor',
      'adapters',
      'hosts',
    ]),
  );
  expect(only('stores')).toBe('ok: no data yet');
});

test('each fault of the configuration is a finding with its path, and the exit code is 1', async () => {
  const folder = await tempDir();
  await writeFile(join(folder, 'svc.config.json'), '{"gateway": {"port": "x"}, "gatway": {}}');
  const { code, json, of } = await doctor(folder);
  expect([code, json.ok, json.error.details.names]).toEqual([1, false, ['config']]);
  expect(of('config').map(({ message }) => message.split(':')[0])).toEqual(['gateway.port', 'gatway']);
  const text = await runSvc(folder, ['doctor']);
  expect([
    text.code,
    text.stdout.includes('✗ config'),
    text.stderr.includes('Problems were found in: config.'),
  ]).toEqual([1, true, true]);
});

test('a port conflict is reported with the process that owns the port', async () => {
  const port = await occupyPort();
  const { code, only, of } = await doctor(await project({ rest: { port } }));
  expect(code).toBe(1);
  expect(only('ports')).toContain(`Port ${port} of rest is in use by pid ${process.pid}`);
  expect(of('ports')[0]?.remedy).toContain('svc up --port rest=0');
});

test('short, well-known, equal or version-controlled secrets are reported', async () => {
  const folder = await project({
    gateway: { port: 0, staticTokens: { short: { hostId: 'ci', namespaceId: 'default' } } },
    rest: { port: 0, host: '0.0.0.0' },
  });
  await writeFile(
    join(folder, '.env'),
    'GATEWAY_JWT_SECRET=short\nGATEWAY_INTERNAL_SECRET=short\nSVC_MASTER_KEY=abc\n',
    { mode: 0o644 },
  );
  execFileSync('git', ['init', '-q'], { cwd: folder });
  execFileSync('git', ['add', '-f', '.env'], { cwd: folder });
  const { only, of } = await doctor(folder);
  for (const says of [
    'warn: GATEWAY_JWT_SECRET is shorter than 32 bytes',
    'warn: GATEWAY_JWT_SECRET and GATEWAY_INTERNAL_SECRET are identical',
    'fail: SVC_MASTER_KEY is not 32 bytes',
    'warn: The static token of ci (default) is guessable',
    'fail: rest listens on 0.0.0.0 and accepts anonymous calls',
    'fail: .env is under version control',
  ])
    expect(only('secrets')).toContain(says);
  for (const { message } of of('secrets')) expect(message).not.toContain('"short"');
  const production = await doctor(folder, ['--profile', 'production']);
  expect(production.only('secrets')).toContain('fail: GATEWAY_JWT_SECRET is shorter');
  expect(production.only('secrets')).not.toContain('rest listens');
});

test('unreadable keys are reported with a remedy', async () => {
  const folder = await project();
  await mkdir(join(folder, '.svc'), { mode: 0o700 });
  await writeFile(join(folder, '.svc', 'svc.db'), '');
  await writeFile(join(folder, '.svc', 'keys.json'), '{', { mode: 0o600 });
  expect((await doctor(folder)).of('secrets')).toMatchObject([
    {
      status: 'fail',
      message: expect.stringContaining('keys.json'),
      remedy: expect.stringContaining('backup'),
    },
  ]);
});

test('files dated in the future show that the clock was set back', async () => {
  const folder = await project();
  await mkdir(join(folder, '.svc'), { mode: 0o700 });
  const file = join(folder, '.svc', 'keys.json');
  await writeFile(file, '{}', { mode: 0o600 });
  const later = Date.now() / 1000 + 3600;
  await utimes(file, later, later);
  expect((await doctor(folder)).only('clock')).toMatch(/fail: .*files here are (?:1h|59m|60m).* newer/);
});

test('an unreachable upstream, a missing engine and a broken plugin are reported', async () => {
  const dead = await freePort();
  const folder = await project({
    gateway: { port: 0, upstreams: { rest: { url: `http://127.0.0.1:${dead}` } } },
    execution: { default: 'container', container: { socket: '/nowhere/engine.sock' } },
  });
  await writePlugin(folder, 'bad', { 'svc.plugin.json': '{"schema": "svc.plugin/3", "id": "bad"}' });
  const { only } = await doctor(folder);
  expect(only('upstreams')).toContain(`fail: The upstream rest at http://127.0.0.1:${dead} is unreachable`);
  expect(only('engine')).toBe('fail: Container engine socket /nowhere/engine.sock does not exist.');
  expect(only('plugins')).toContain('fail: The plugin bad is broken');
});

test('invalid workflow files, unset model keys and missing plugins are faults', SLOW, async () => {
  const folder = await project({
    adapters: {
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the form in which the config names a variable.
      llm: { baseUrl: 'https://models.example.com', apiKey: '${NO_SUCH_KEY}', models: { default: 'm' } },
      embeddings: {
        baseUrl: 'https://models.example.com',
        // biome-ignore lint/suspicious/noTemplateCurlyInString: as above.
        apiKey: '${secret:NO_SUCH_SECRET}',
        model: 'm',
      },
    },
  });
  await mkdir(join(folder, 'workflows'));
  await writeFile(
    join(folder, 'workflows/bad.yaml'),
    'id: bad\non: {schedule: [{cron: "61 * * * *"}]}\njobs: {a: {steps: [{uses: set}]}}\n',
  );
  await writeFile(join(folder, 'workflows/lost.yaml'), 'id: lost\njobs: {a: {steps: [{uses: nobody/go}]}}\n');
  const { code, only } = await doctor(folder);
  expect(code).toBe(1);
  expect(only('workflows')).toMatch(
    /fail: workflows\/bad\.yaml:2:24 on\.schedule\[0\]\.cron: [\s\S]*fail: workflows\/lost\.yaml:2:\d+ jobs\.a\.steps\[0\]\.uses: there is no plugin "nobody" that runs/,
  );
  // biome-ignore lint/suspicious/noTemplateCurlyInString: as above.
  const unset = 'fail: adapters.llm.apiKey is ${NO_SUCH_KEY}, but NO_SUCH_KEY is not set.';
  const unstored =
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as above.
    'fail: adapters.embeddings.apiKey is ${secret:NO_SUCH_SECRET}, but the namespace default has no secret NO_SUCH_SECRET.';
  expect(only('adapters')).toBe(`${unset}\n${unstored}`);
});

describe('of one platform, in this order', () => {
  let platform: Awaited<ReturnType<typeof sharedPlatform>>;

  beforeAll(async () => {
    platform = await sharedPlatform({}, { SVC_MASTER_KEY: undefined });
    const { folder, end } = platform;
    const webhooks = [{ event: 'e', handler: 'h.js#h', auth: { type: 'secret', header: 'x-secret' } }];
    const manifest = { schema: 'svc.plugin/3', id: 'toy', version: '1.0.0', webhooks };
    await writePlugin(folder, 'toy', {
      'svc.plugin.json': JSON.stringify(manifest),
      'h.js': 'export const h = () => 1;',
    });
    await writePlugin(folder, 'bad', { 'svc.plugin.json': '{"schema": "svc.plugin/3", "id": "bad"}' });
    return end;
  });

  async function runningPlatform() {
    const { json } = await platform.svc('status');
    if (!json.result.running) expect((await platform.svc('up', '-d')).code).toBe(0);
    return platform;
  }

  /** For tests of the exit code, which it would decide. */
  const removeBrokenPlugin = () =>
    rm(join(platform.folder, 'plugins', 'bad'), { recursive: true, force: true });

  test('for a running platform doctor reports services that are down and broken plugins', SLOW, async () => {
    const { folder } = await runningPlatform();
    const { only } = await doctor(folder);
    expect(only('supervisor')).toMatch(/^ok: all services are ready/);
    expect(only('ports')).toContain('ok: held by this platform');
    expect(only('stores')).toContain('are intact');
    expect(only('plugins')).toContain('fail: The plugin bad is broken');
  });

  test('webhook secrets that the current master key cannot open are reported', SLOW, async () => {
    const { svc, folder } = await runningPlatform();
    await svc('webhooks', 'provision', 'toy', 'e');
    expect((await doctor(folder)).only('secrets')).toMatch(/^ok/);
    const other = { SVC_MASTER_KEY: randomBytes(32).toString('base64url') };
    expect((await doctor(folder, [], other)).only('secrets')).toMatch(
      /^fail: 1 secret was encrypted with another master key than the one in SVC_MASTER_KEY/,
    );
  });

  test('a plugin that runs only on a host is a fault while that host is offline', SLOW, async () => {
    const { folder, svc } = await runningPlatform();
    await removeBrokenPlugin();
    const file = join(folder, 'svc.config.json');
    const config = JSON.parse(await readFile(file, 'utf8'));
    const runOn = (rule: object) =>
      writeFile(
        file,
        JSON.stringify({ ...config, execution: { plugins: { orders: { backend: 'host', ...rule } } } }),
      );
    const { SVC_GATEWAY_URL: url, SVC_TOKEN: token } = (await svc('status', '--env')).json.result.env;
    const host = await registerTestHost({ url }, token, { labels: { zone: 'a' } });
    await runOn({ hostId: host.hostId });
    const offline = await doctor(folder);
    expect(offline.code).toBe(1);
    expect(offline.of('hosts')).toMatchObject([
      {
        status: 'fail',
        message: `The plugin orders cannot run: its only host ${host.hostId} is offline.`,
        remedy: expect.stringContaining('svc agent run'),
      },
    ]);

    await connectRaw({ url }, await host.token(), host).hello();
    expect((await doctor(folder)).only('hosts')).toBe('ok: every plugin on hosts has a matching host online');
    await runOn({ labels: { zone: 'b' } });
    expect((await doctor(folder)).only('hosts')).toBe(
      'fail: The plugin orders cannot run: no matching host is online.',
    );
    await writeFile(file, JSON.stringify(config));
  });

  test(
    '--fix narrows file modes and removes leftovers of a killed supervisor, and changes nothing else',
    SLOW,
    async () => {
      const { folder, svc, dataDir } = await runningPlatform();
      await removeBrokenPlugin();
      const { pid } = (await svc('status')).json.result;
      const { children } = JSON.parse(await readFile(join(dataDir, 'run', 'supervisor.json'), 'utf8'));
      process.kill(pid, 'SIGKILL');
      for (const child of children) process.kill(child.pid, 'SIGKILL');
      await chmod(join(dataDir, 'keys.json'), 0o644);
      await mkdir(join(dataDir, 'run', 'backup-999999-abcdef'), { mode: 0o700 });
      await mkdir(`${dataDir}.restoring-999999`);
      await expect
        .poll(async () => (await doctor(folder)).only('supervisor'), { interval: 200 })
        .toContain(`was left by a killed supervisor (pid ${pid})`);

      const before = await doctor(folder);
      expect(before.only('files')).toContain('keys.json has mode 644');
      expect(before.only('supervisor')).toContain('backup-999999-abcdef was left by a killed command');
      const fixed = await doctor(folder, ['--fix']);
      expect([fixed.code, fixed.json.result.fixed, fixed.json.result.warned]).toEqual([0, 4, 0]);
      expect((await stat(join(dataDir, 'keys.json'))).mode & 0o777).toBe(0o600);
      const after = await doctor(folder);
      expect([after.json.result.fixed, after.only('files'), after.only('supervisor')]).toEqual([
        0,
        `ok: ${dataDir} is private to this user`,
        'ok: not running',
      ]);
      expect((await svc('up', '-d')).code).toBe(0);
    },
  );

  test('a damaged store, a newer one and broken keys are failures with a remedy', SLOW, async () => {
    const { folder, svc, dataDir } = await runningPlatform();
    await svc('down');
    const newer = new Sqlite(join(dataDir, 'state.db'));
    newer.pragma('user_version = 99');
    newer.close();
    const file = join(dataDir, 'svc.db');
    const bytes = await readFile(file);
    bytes.fill(0xff, 3 * 4096, 12 * 4096);
    await writeFile(file, bytes);
    await writeFile(join(dataDir, 'credentials.json'), '{}');
    const { code, only } = await doctor(folder);
    expect(code).toBe(1);
    expect(only('stores')).toMatch(/fail: .*svc\.db is damaged/);
    expect(only('stores')).toMatch(/fail: .*state\.db was written by a newer version/);
    expect(only('credentials')).toMatch(/fail: .*Cannot use .*credentials\.json/);
  });
});
