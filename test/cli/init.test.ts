import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { appendFile, cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { entryFile } from '../../src/kit/files/paths.ts';
import { tempDir } from '../support/daemon.ts';
import { testPlatform, withStandIns } from './platform.ts';
import { runSvc } from './svc.ts';

const SECRETS = ['GATEWAY_JWT_SECRET', 'GATEWAY_INTERNAL_SECRET'];
const secretsOf = async (folder: string) => parseEnv(await readFile(join(folder, '.env'), 'utf8'));

test('--yes creates a project that starts unchanged, with the example loaded', {
  timeout: 60_000,
}, async () => {
  const { folder, svc } = await testPlatform();
  const made = await runSvc(folder, ['init', '--yes', '--force', '--json']);
  expect(made.json).toMatchObject({ ok: true, result: { plugin: 'github' } });
  expect(made.json.result.files).toEqual([
    { path: 'plugins/github/', action: 'created' },
    { path: 'vendor/svc.schema.json', action: 'created' },
    { path: 'vendor/workflow.schema.json', action: 'created' },
    { path: 'AGENTS.md', action: 'created' },
    { path: '.gitignore', action: 'created' },
    { path: '.env', action: 'created' },
    { path: 'svc.config.json', action: 'replaced' },
  ]);

  const ports = ['gateway', 'rest', 'workflow', 'marketplace', 'state'].flatMap((name) => [
    '--port',
    `${name}=0`,
  ]);
  expect((await svc('up', '-d', ...ports)).code).toBe(0);
  const { json } = await svc('plugins', 'show', 'github');
  expect(json.result).toMatchObject({ id: 'github', status: 'loaded' });
});

test('the config validates, names an existing schema, and its secrets are readable by their owner only', async () => {
  const folder = await tempDir();
  const { code, stdout } = await runSvc(folder, ['init', 'shop', '--plugin', 'none']);
  expect([code, stdout.includes('cd shop')]).toEqual([0, true]);
  const project = join(folder, 'shop');
  expect((await runSvc(project, ['config', 'validate'])).code).toBe(0);
  // A colleague's clone lies elsewhere, on a machine with another installation of svc or none.
  const clone = join(await tempDir(), 'deep', 'clone');
  await cp(project, clone, { recursive: true });
  const { $schema } = JSON.parse(await readFile(join(clone, 'svc.config.json'), 'utf8'));
  expect(relative(clone, resolve(clone, $schema))).not.toMatch(/^\.\./);
  expect(JSON.parse(await readFile(resolve(clone, $schema), 'utf8')).title).toBe('svc.config.json');

  expect((await stat(join(project, '.env'))).mode & 0o777).toBe(0o600);
  const secrets = await secretsOf(project);
  for (const name of SECRETS) expect(Buffer.from(secrets[name] ?? '', 'base64url')).toHaveLength(32);
  const ignored = (await readFile(join(project, '.gitignore'), 'utf8')).split('\n');
  expect(ignored).toEqual(expect.arrayContaining(['.svc*/', '.env']));
});

test('an existing project is refused; --force rewrites the config and keeps every secret', async () => {
  const folder = await tempDir();
  await writeFile(join(folder, '.env'), 'GATEWAY_JWT_SECRET=the-one-in-use-which-is-long-enough-to-keep');
  await writeFile(join(folder, '.gitignore'), '/.env\ncoverage');
  await runSvc(folder, ['init', '--plugin', 'rest']);
  await writeFile(join(folder, 'svc.config.json'), '{"gateway":{"port":4999}}');
  const before = await secretsOf(folder);
  expect(before.GATEWAY_JWT_SECRET).toBe('the-one-in-use-which-is-long-enough-to-keep');
  expect(await readFile(join(folder, '.gitignore'), 'utf8')).toBe('/.env\ncoverage\n.svc*/\nnode_modules/\n');

  const refused = await runSvc(folder, ['init', '--plugin', 'rest', '--json']);
  expect([refused.code, refused.json.error.code]).toEqual([1, 'CONFLICT']);
  expect(refused.json.error.details.hint).toContain('--force');
  // Not asked first which plugin it shall be.
  expect((await runSvc(folder, ['init', '--json'])).json.error.code).toBe('CONFLICT');
  expect(await readFile(join(folder, 'svc.config.json'), 'utf8')).toBe('{"gateway":{"port":4999}}');

  const forced = await runSvc(folder, ['init', '--plugin', 'rest', '--force', '--json']);
  expect(forced.json.result.files.map(({ action }: { action: string }) => action)).toEqual([
    'kept',
    'kept',
    'kept',
    'kept',
    'kept',
    'kept',
    'replaced',
  ]);
  expect(await secretsOf(folder)).toEqual(before);
});

test('without a terminal and without --yes, init names the flag to pass and writes nothing', async () => {
  const folder = await tempDir();
  for (const flags of [[], ['--json'], ['--no-input']]) {
    const { code, stdout, stderr } = await runSvc(folder, ['init', ...flags]);
    expect(code).toBe(3);
    expect(stdout + stderr).toMatch(/Use --plugin, or --yes for the default/);
  }
  expect(await readdir(folder)).toEqual([]);
});

test('an init that fails removes its files', async () => {
  const folder = await tempDir();
  await mkdir(join(folder, 'shop', '.env'), { recursive: true });
  const { code, json } = await runSvc(folder, ['init', 'shop', '--yes', '--json']);
  expect([code, json.error.code]).toEqual([1, 'STORE_ERROR']);
  expect(await readdir(join(folder, 'shop'))).toEqual(['.env']);
});

/** `svc` on a terminal of its own; `script` makes one. */
function onTerminal(cwd: string, ...args: string[]): { child: ChildProcess; seen(): string } {
  const line = [process.execPath, entryFile('cli'), ...args].map((word) => `'${word}'`).join(' ');
  const sized = `stty cols 80 rows 24; exec ${line}`;
  const child = spawn('script', ['-qec', sized, '/dev/null'], { cwd, stdio: ['pipe', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let seen = '';
  child.stdout?.on('data', (text) => (seen += text));
  return { child, seen: () => seen };
}

const ended = (child: ChildProcess) => new Promise<number | null>((resolve) => child.once('close', resolve));

test.skipIf(!existsSync('/usr/bin/script'))(
  'on a terminal init prompts; Ctrl-C leaves no files',
  async () => {
    const folder = await tempDir();
    const cancelled = onTerminal(folder, 'init', 'shop');
    await expect.poll(cancelled.seen).toContain('Which plugin to start with?');
    const cancelledCode = ended(cancelled.child);
    cancelled.child.stdin?.write('\x03');
    expect(await cancelledCode).toBe(130);
    expect(cancelled.seen()).toContain('Nothing was changed');
    expect(await readdir(folder)).toEqual([]);

    const chosen = onTerminal(folder, 'init', 'shop');
    await expect.poll(chosen.seen).toContain('Which plugin to start with?');
    const code = ended(chosen.child);
    chosen.child.stdin?.write('\x1b[B\r');
    expect(await code).toBe(0);
    expect(await readdir(join(folder, 'shop', 'plugins'))).toEqual(['my-webhook']);
  },
);

test('production starts only with a secret in .env, which `init --production` writes', {
  timeout: 90_000,
}, async () => {
  const { folder, svc } = await testPlatform(
    ...withStandIns({ env: { GATEWAY_JWT_SECRET: undefined }, real: ['gateway'] }),
  );
  const dotEnv = join(folder, '.env');
  const standIns = await readFile(dotEnv, 'utf8');
  const config = await readFile(join(folder, 'svc.config.json'), 'utf8');
  const start = () => svc('up', '-d', '--profile', 'production');
  // Development makes keys.json, which production must not fall back to.
  expect((await svc('up', '-d')).code).toBe(0);
  expect((await svc('down')).code).toBe(0);
  const refused = await start();
  expect(refused.code).toBe(1);
  expect(refused.json.error.message).toContain('svc init --production');
  expect((await svc('doctor', '--profile', 'production')).stdout).toContain('GATEWAY_JWT_SECRET is not set');

  await rm(dotEnv);
  const made = await svc('init', '--production');
  expect(made.json.result).toMatchObject({ plugin: null });
  expect(made.json.result.files).toContainEqual({ path: '.env', action: 'created' });
  expect(await readFile(join(folder, 'svc.config.json'), 'utf8')).toBe(config);
  await appendFile(dotEnv, `\n${standIns}`);
  const secrets = await secretsOf(folder);
  expect((await start()).code).toBe(0);

  const again = await svc('init', '--production');
  expect(again.json.result.files).toContainEqual({ path: '.env', action: 'kept' });
  expect(await secretsOf(folder)).toEqual(secrets);
});
