import { type ChildProcess, spawn } from 'node:child_process';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PROJECT } from '../agent/support.ts';
import { engineMissing, startEngine, type TestEngine } from '../plugins/engine.ts';
import { createPlatform, INSTALLED, type Platform } from '../support/platform.ts';

/** Hosts and containers of the package as it is shipped: its built daemons, agent and runner. */
let platform: Platform;
let engine: TestEngine | undefined;
let agent: ChildProcess;
let url: string;

/** The fixture plugin under another name, with one command. */
async function plant(folder: string, id: string): Promise<void> {
  await cp(join(PROJECT, 'plugins/tools'), folder, { recursive: true });
  const file = join(folder, 'svc.plugin.json');
  const { schema, version } = JSON.parse(await readFile(file, 'utf8'));
  const commands = [{ id: `about-${id}`, handler: 'handlers.js#about' }];
  await writeFile(file, JSON.stringify({ schema, id, version, commands }));
}

beforeAll(async () => {
  if (engineMissing === undefined) engine = await startEngine();
  platform = await createPlatform({
    plugins: ['./plugins/*'],
    execution: {
      plugins: { far: { backend: 'host' }, boxed: { backend: 'container' } },
      ...(engine ? { container: { socket: engine.socket } } : {}),
    },
  });
  await mkdir(join(platform.folder, 'plugins'));
  await plant(join(platform.folder, 'plugins/far'), 'far');
  await plant(join(platform.folder, 'plugins/boxed'), 'boxed');
  url = await platform.up();
}, 180_000);

afterAll(async () => {
  agent?.kill('SIGKILL');
  await platform?.dispose();
  await engine?.stop();
}, 120_000);

test('a machine registers, runs what it is given from its own process, and stops when it is told', {
  timeout: 90_000,
}, async () => {
  const before = await platform.svc('run', 'far', 'about-far');
  expect(before.envelope.error.code).toBe('HOST_UNAVAILABLE');

  const { envelope: invited } = await platform.svc('hosts', 'invite');
  const home = join(platform.folder, 'agent');
  const where = ['--home', home];
  const registered = await platform.svc(
    ...['agent', 'register', '--gateway', url, '--token', invited.result.token, '--name', 'edge', ...where],
  );
  expect(registered.envelope.result).toMatchObject({ name: 'edge', namespaceId: 'default' });
  agent = spawn(join(INSTALLED, 'bin/svc'), ['agent', 'run', ...where], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise<void>((resolve, reject) => {
    agent.stdout!.on('data', (text) => String(text).includes('Connected to') && resolve());
    agent.once('exit', (code) => reject(new Error(`the agent ended with ${code}`)));
  });

  const { envelope: run } = await platform.svc('run', 'far', 'about-far');
  expect(run.result).toMatchObject({ pluginId: 'far', tenantId: 'default' });
  // Fetched into the agent's own folder, and run from there by the built runner.
  expect(run.result.script.startsWith(join(home, 'plugins'))).toBe(true);
  const { envelope: hosts } = await platform.svc('hosts', 'list');
  expect(hosts.result.items).toMatchObject([{ name: 'edge', status: 'online' }]);

  agent.removeAllListeners('exit');
  const ended = new Promise((resolve) => agent.once('exit', resolve));
  agent.kill('SIGTERM');
  expect(await ended).toBe(0);
});

test.skipIf(engineMissing !== undefined)(
  'a plugin runs in a container, with the built runner',
  { timeout: 60_000 },
  async () => {
    const { envelope } = await platform.svc('run', 'boxed', 'about-boxed');
    expect(envelope.result).toMatchObject({ pluginId: 'boxed', hostname: 'svc-runner', pid: 1 });
  },
);
