import { spawn } from 'node:child_process';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { marketplace } from '../../src/daemons/marketplace/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { rest } from '../../src/daemons/rest/index.ts';
import { entryFile } from '../../src/kit/files/paths.ts';
import { greeter, pluginFolder, writeFiles } from '../daemons/marketplace/support.ts';
import { runCli } from '../support/cli.ts';
import { startTestDaemon, tempDir } from '../support/daemon.ts';
import { ADMIN_TOKEN, startGateway } from '../support/gateway.ts';

/** `svc`, as the operator, against the gateway with the REST service and the marketplace behind it. */
async function startPlatform() {
  const projectDir = await tempDir();
  const options = { projectDir, dataDir: join(projectDir, '.svc') };
  const owner = await startTestDaemon(marketplace, options);
  const peers = createPeers({ marketplace: owner.url });
  peers.set({ rest: (await startTestDaemon(rest, { ...options, peers })).url });
  const { url } = await startGateway({ ...options, peers });
  const svc = (cwd: string, ...args: string[]) =>
    runCli([...args, '--url', url, '--token', ADMIN_TOKEN], { cwd });
  /** A command that runs until it is interrupted. */
  function spawnSvc(cwd: string, ...args: string[]) {
    const child = spawn(process.execPath, [entryFile('cli'), ...args, '--url', url, '--token', ADMIN_TOKEN], {
      cwd,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await ended;
    });
    return {
      until: (pattern: RegExp) => expect.poll(() => output, { timeout: 15_000 }).toMatch(pattern),
      async interrupt() {
        child.kill('SIGINT');
        return ended;
      },
    };
  }
  return { projectDir, svc, spawnSvc, owner };
}

test('install shows the plan and asks for confirmation; update shows the difference', async () => {
  const { projectDir, svc } = await startPlatform();
  const folder = await pluginFolder(greeter('1.0.0', { permissions: { network: ['a.example'] } }));
  const unanswered = await svc(projectDir, 'plugins', 'install', folder);
  expect(unanswered.code).toBe(3);
  expect(unanswered.stderr).toMatch(/\+ permission network a\.example[\s\S]*Use --yes to confirm/);
  expect(JSON.parse((await svc(projectDir, 'plugins', 'list', '--json')).stdout).result.items).toEqual([]);

  // A relative path means the folder of whoever types it.
  const installed = await svc(folder, 'plugins', 'install', '.', '--yes', '--json');
  expect(JSON.parse(installed.stdout)).toMatchObject({
    ok: true,
    result: { id: '@acme/greeter', version: '1.0.0', origin: 'installed', status: 'loaded' },
  });
  const again = await svc(folder, 'plugins', 'install', '.', '--yes');
  expect([again.code, again.stderr]).toEqual([
    1,
    expect.stringContaining('svc plugins update @acme/greeter'),
  ]);

  await writeFiles(folder, greeter('1.1.0', { permissions: { network: ['b.example'] } }));
  const updated = await svc(projectDir, 'plugins', 'update', '@acme/greeter', '--yes');
  expect(updated.stderr).toMatch(
    /1\.0\.0 -> 1\.1\.0[\s\S]*\+ permission network b\.example[\s\S]*- permission network a\.example/,
  );
  expect(updated.stdout).toMatch(/@acme\/greeter 1\.1\.0/);
});

test('plugins are listed, shown, enabled, disabled, linked and removed', async () => {
  const { projectDir, svc } = await startPlatform();
  const folder = await pluginFolder();
  const run = async (...args: string[]) =>
    JSON.parse((await svc(projectDir, 'plugins', ...args, '--json')).stdout);
  expect(await run('link', folder)).toMatchObject({ ok: true, result: { origin: 'linked', root: folder } });
  expect((await svc(projectDir, 'plugins', 'list')).stdout).toMatch(
    /@acme\/greeter\s+1\.0\.0\s+loaded\s+linked/,
  );
  expect((await svc(projectDir, 'plugin', 'show', '@acme/greeter')).stdout).toMatch(
    /commands\s+greet-acmegreeter/,
  );
  expect(await run('disable', '@acme/greeter')).toMatchObject({
    result: { enabled: false, status: 'disabled' },
  });
  expect(await run('enable', '@acme/greeter')).toMatchObject({ result: { enabled: true, status: 'loaded' } });
  expect(await run('uninstall', '@acme/greeter', '--yes')).toMatchObject({
    ok: false,
    error: { code: 'CONFLICT' },
  });
  expect(await run('unlink', '@acme/greeter')).toEqual({ ok: true, result: { unlinked: true } });
  expect(await run('show', '@acme/greeter')).toMatchObject({
    ok: false,
    error: { code: 'PLUGIN_NOT_FOUND' },
  });
});

test('a broken plugin whose previous version still runs is reported as such', async () => {
  const { projectDir, svc, owner } = await startPlatform();
  const folder = await pluginFolder();
  await svc(projectDir, 'plugins', 'link', folder);
  await expect.poll(() => owner.services.plugins.registry.plugins).toHaveLength(1);
  await writeFiles(folder, { 'svc.plugin.json': '{' });
  expect((await svc(projectDir, 'plugins', 'list')).stdout).toMatch(
    /@acme\/greeter\s+\S+\s+broken, running 1\.0\.0\s+linked/,
  );
  const { stdout } = await svc(projectDir, 'plugins', 'show', '@acme/greeter');
  expect(stdout).toMatch(
    /status\s+broken; version 1\.0\.0 keeps running\n[\s\S]*commands\s+greet-acmegreeter/,
  );
  const shown = await svc(projectDir, 'plugins', 'show', '@acme/greeter', '--json');
  expect(JSON.parse(shown.stdout).result).toMatchObject({ status: 'broken', keptVersion: '1.0.0' });
});

test('plugins dev reloads a changed folder in all services, and reports faults', async () => {
  const { projectDir, svc, spawnSvc } = await startPlatform();
  const folder = await pluginFolder();
  const dev = spawnSvc(projectDir, 'plugins', 'dev', folder, '--json');
  await dev.until(/; watching /);
  expect(JSON.parse((await svc(projectDir, 'plugins', 'list', '--json')).stdout).result.items).toMatchObject([
    { id: '@acme/greeter', origin: 'linked' },
  ]);
  await writeFiles(folder, { 'h.js': 'export const greet = () => "edited";' });
  await dev.until(/"reloaded":true,"id":"@acme\/greeter"/);
  await writeFiles(folder, { 'h.js': 'syntax(' });
  await dev.until(/"reloaded":false,"faults":\[\{"code":"INVALID_HANDLER"/);

  // Gone, as while another branch is checked out, and back: still watched.
  await rename(folder, `${folder}-away`);
  await dev.until(/"reloaded":false,"faults":\[[^\n]* does not exist/);
  await rename(`${folder}-away`, folder);
  await writeFiles(folder, greeter('1.3.0'));
  await dev.until(/does not exist\.[\s\S]*"reloaded":true,"id":"@acme\/greeter"/);
  await writeFiles(folder, { 'h.js': 'export const other = 1;' });
  await dev.until(/does not exist\.[\s\S]*"reloaded":true[\s\S]*"reloaded":false,[^\n]*has no export/);
  expect(await dev.interrupt()).toBe(130);
});

test('plugins dev loads a new folder of the project, and reports conflicts with other plugins', async () => {
  const { projectDir, svc, spawnSvc } = await startPlatform();
  const at = (name: string) => join(projectDir, 'plugins', name);
  await writeFiles(at('greeter'), greeter('1.0.0'));
  const dev = spawnSvc(projectDir, 'plugins', 'dev', at('greeter'), '--json');
  await dev.until(/"reloaded":true,"id":"@acme\/greeter"[\s\S]*; watching /);
  const called = () => svc(projectDir, 'run', '@acme/greeter', 'greet-acmegreeter');
  await expect.poll(called, { timeout: 10_000 }).toMatchObject({ code: 0 });
  expect(await dev.interrupt()).toBe(130);

  const commands = [{ id: 'greet-acmegreeter', handler: 'h.js#greet' }];
  await writeFiles(at('second'), greeter('1.0.0', { id: 'second', commands }));
  const clashing = spawnSvc(projectDir, 'plugins', 'dev', at('second'), '--json');
  await clashing.until(/"reloaded":false,"faults":\[\{"code":"PLUGIN_CONFLICT"/);
});
