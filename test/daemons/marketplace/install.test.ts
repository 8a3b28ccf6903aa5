import { execFileSync, spawnSync } from 'node:child_process';
import { appendFile, chmod, mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  disablePlugin,
  enablePlugin,
  getPlugin,
  installPlugin,
  LockFile,
  linkPlugin,
  listPlugins,
  planPlugin,
  uninstallPlugin,
  unlinkPlugin,
  updatePlugin,
} from '../../../src/contracts/index.ts';
import { createClient, serviceHeaders } from '../../../src/http/index.ts';
import { TEST_KEYS, tempDir } from '../../support/daemon.ts';
import {
  greeter,
  pluginArchive,
  pluginFolder,
  startMarketplace,
  type TestMarketplace,
  writeFiles,
} from './support.ts';

const ID = '@acme/greeter' as never;
const params = { pluginId: ID };
const install = (daemon: TestMarketplace, source: string) => daemon.call(installPlugin, { body: { source } });
const lockOf = async ({ dataDir }: TestMarketplace) =>
  LockFile.parse(JSON.parse(await readFile(join(dataDir, 'marketplace.lock.json'), 'utf8')));
const installedFolders = async ({ dataDir }: TestMarketplace) => readdir(join(dataDir, 'plugins'));

test('an archive is installed, recorded with its integrity, and deleted on removal', async () => {
  const daemon = await startMarketplace();
  const source = await pluginArchive();
  const plugin = await install(daemon, source);
  expect(plugin).toMatchObject({ id: ID, version: '1.0.0', origin: 'installed', status: 'loaded', source });
  const { plugins, revision } = await lockOf(daemon);
  expect(revision).toBe(1);
  expect(plugins[ID]).toEqual({
    id: ID,
    version: '1.0.0',
    origin: 'installed',
    source,
    resolved: source,
    folder: expect.stringMatching(/^acme__greeter-1\.0\.0-[0-9a-f]{16}$/),
    integrity: expect.stringMatching(/^sha512-/),
    installedAt: new Date(daemon.clock.now()).toISOString(),
    enabled: true,
    manifestDigest: expect.stringMatching(/^sha256-/),
  });
  expect(daemon.logs.lines).toContainEqual(
    expect.objectContaining({ event: 'plugin.installed', pluginId: ID, outcome: 'succeeded' }),
  );
  await expect(install(daemon, source)).rejects.toMatchObject({
    code: 'PLUGIN_CONFLICT',
    message: expect.stringContaining('svc plugins update'),
  });
  expect(await daemon.call(uninstallPlugin, { params })).toEqual({ uninstalled: true });
  await expect(daemon.call(getPlugin, { params })).rejects.toMatchObject({ code: 'PLUGIN_NOT_FOUND' });
  await expect(daemon.call(uninstallPlugin, { params })).rejects.toMatchObject({ code: 'PLUGIN_NOT_FOUND' });
});

test('a folder is copied: later changes to the source have no effect', async () => {
  const daemon = await startMarketplace();
  const folder = await pluginFolder(greeter('1.0.0', {}, { 'node_modules/junk/a.js': '', '.git/HEAD': 'x' }));
  const { root } = await install(daemon, folder);
  expect(await readdir(root)).toEqual(['h.js', 'package.json', 'svc.plugin.json']);
  await writeFile(join(folder, 'h.js'), 'broken(');
  expect(await daemon.call(getPlugin, { params })).toMatchObject({ status: 'loaded' });
});

test('a git repository is installed at its commit', async () => {
  const daemon = await startMarketplace();
  const folder = await pluginFolder();
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], {
      cwd: folder,
      encoding: 'utf8',
    }).trim();
  git('init', '--quiet', '--initial-branch', 'main');
  git('add', '.');
  git('commit', '--quiet', '-m', 'one');
  const first = git('rev-parse', 'HEAD');
  await writeFiles(folder, greeter('2.0.0'));
  git('commit', '--quiet', '-a', '-m', 'two');
  const plugin = await install(daemon, `git+file://${folder}#${first}`);
  expect(plugin).toMatchObject({ version: '1.0.0', resolved: `file://${folder}#${first}` });
  const updated = await daemon.call(updatePlugin, { params, body: { source: `git+file://${folder}#main` } });
  expect(updated).toMatchObject({
    version: '2.0.0',
    resolved: `file://${folder}#${git('rev-parse', 'HEAD')}`,
  });
});

test.each([
  ['a file that was changed', async (root: string) => appendFile(join(root, 'h.js'), '//')],
  ['a file that was added', async (root: string) => writeFile(join(root, 'extra.js'), '')],
  ['a file that was taken away', async (root: string) => rm(join(root, 'package.json'))],
  ['a link', async (root: string) => symlink('/etc/hosts', join(root, 'hosts'))],
  ['a file made a program', async (root: string) => chmod(join(root, 'h.js'), 0o755)],
])('%s keeps an installed plugin from loading', async (_name, change) => {
  const daemon = await startMarketplace();
  const { root } = await install(daemon, await pluginFolder());
  await change(root);
  expect(await daemon.call(getPlugin, { params })).toMatchObject({
    status: 'broken',
    version: '1.0.0',
    faults: [
      { code: 'INTEGRITY_MISMATCH', message: expect.stringContaining('changed after it was installed') },
    ],
  });
});

test('updating a plugin of the project is refused, with its kind as the reason', async () => {
  const projectDir = await tempDir();
  await writeFiles(join(projectDir, 'plugins', 'greeter'), greeter());
  const daemon = await startMarketplace({ projectDir, dataDir: join(projectDir, '.svc') });
  await expect(daemon.call(updatePlugin, { params, body: {} })).rejects.toMatchObject({
    code: 'CONFLICT',
    message: '@acme/greeter is project: its folder is used in place, so there is nothing to update.',
  });
});

test('an update shows its changes before applying them, and refuses changes that were not shown', async () => {
  const daemon = await startMarketplace();
  const folder = await pluginFolder(greeter('1.0.0', { permissions: { network: ['a.example'] } }));
  await install(daemon, folder);
  await writeFiles(
    folder,
    greeter('1.1.0', {
      permissions: {
        fs: { read: ['/srv/orders'] },
        network: ['b.example', '*'],
        platform: { childProcess: true },
      },
      rest: {
        basePath: '/v1/plugins/greeter',
        routes: [{ method: 'GET', path: '/', handler: 'h.js#greet', security: ['none'] }],
      },
    }),
  );
  const plan = await daemon.call(planPlugin, { body: { pluginId: ID } });
  expect(plan).toMatchObject({ id: ID, installed: '1.0.0', version: '1.1.0' });
  expect(plan.changes).toEqual(
    expect.arrayContaining([
      { change: 'removed', what: 'permission', name: 'network a.example', before: true },
      { change: 'added', what: 'permission', name: 'network b.example', after: true },
      { change: 'added', what: 'permission', name: 'platform.childProcess', after: true },
      { change: 'added', what: 'route', name: 'GET /api/v1/plugins/greeter', after: { security: ['none'] } },
    ]),
  );
  expect(plan.warnings).toEqual([
    expect.stringContaining('full access'),
    expect.stringContaining('any network connection'),
    expect.stringContaining('runs and jobs of every tenant'),
    expect.stringContaining('read files outside'),
    expect.stringContaining('needs no authentication'),
  ]);
  expect(await daemon.call(getPlugin, { params })).toMatchObject({ version: '1.0.0' });

  await writeFiles(folder, greeter('1.2.0', { permissions: { network: ['evil.example'] } }));
  const { manifestDigest } = plan;
  await expect(daemon.call(updatePlugin, { params, body: { manifestDigest } })).rejects.toMatchObject({
    code: 'CONFLICT',
    message: expect.stringContaining('changed since the plan was made'),
  });
  expect(await daemon.call(getPlugin, { params })).toMatchObject({ version: '1.0.0' });
  expect(await daemon.call(updatePlugin, { params, body: {} })).toMatchObject({ version: '1.2.0' });
  expect(await installedFolders(daemon)).toHaveLength(2);
  daemon.clock.advance(120_000);
  await expect.poll(() => installedFolders(daemon)).toHaveLength(1);
});

test('disabling is recorded in the lock file; after enabling the plugin loads', async () => {
  const projectDir = await tempDir();
  await writeFiles(join(projectDir, 'plugins/local'), greeter('3.0.0', { id: 'local' }));
  const daemon = await startMarketplace({ projectDir, dataDir: join(projectDir, '.svc') });
  await install(daemon, await pluginFolder());
  for (const id of [ID, 'local' as never]) {
    const at = { params: { pluginId: id } };
    expect(await daemon.call(disablePlugin, at)).toMatchObject({ id, enabled: false, status: 'disabled' });
    expect((await lockOf(daemon)).plugins[id]).toMatchObject({ enabled: false });
    expect(await daemon.call(getPlugin, at)).toMatchObject({ enabled: false, status: 'disabled' });
    expect(await daemon.call(enablePlugin, at)).toMatchObject({ id, enabled: true, status: 'loaded' });
  }
  await expect(daemon.call(disablePlugin, { params: { pluginId: 'absent' as never } })).rejects.toMatchObject(
    { code: 'PLUGIN_NOT_FOUND' },
  );
  await expect(
    daemon.call(uninstallPlugin, { params: { pluginId: 'local' as never } }),
  ).rejects.toMatchObject({
    code: 'CONFLICT',
    message: expect.stringContaining('origin project, not installed'),
  });
});

test('a linked folder is used in place, with its changes', async () => {
  const daemon = await startMarketplace();
  const folder = await pluginFolder();
  expect(await daemon.call(linkPlugin, { body: { folder } })).toMatchObject({
    id: ID,
    origin: 'linked',
    root: folder,
    integrity: null,
  });
  await appendFile(join(folder, 'h.js'), '\n// more');
  expect(await daemon.call(getPlugin, { params })).toMatchObject({ status: 'loaded' });
  await expect(daemon.call(uninstallPlugin, { params })).rejects.toMatchObject({
    code: 'CONFLICT',
    message: expect.stringContaining('svc plugins unlink'),
  });
  await expect(daemon.call(updatePlugin, { params, body: {} })).rejects.toMatchObject({ code: 'CONFLICT' });
  expect(await daemon.call(unlinkPlugin, { params })).toEqual({ unlinked: true });
  expect(await readdir(folder)).toContain('svc.plugin.json');
  expect((await daemon.call(listPlugins)).items).toEqual([]);
});

test.each<[name: string, manifest: object, code: string]>([
  ['a faulty manifest', { webhooks: [{ event: 'push', handler: 'h.js#greet' }] }, 'INVALID_MANIFEST'],
  ['a handler that is not exported', { commands: [{ id: 'a', handler: 'h.js#absent' }] }, 'INVALID_HANDLER'],
  ['a missing dependency', { dependencies: { absent: '^1.0.0' } }, 'MISSING_DEPENDENCY'],
  ['a dependency on itself', { dependencies: { '@acme/greeter': '*' } }, 'CIRCULAR_DEPENDENCY'],
  [
    'a command that another plugin has',
    { commands: [{ id: 'taken', handler: 'h.js#greet' }] },
    'PLUGIN_CONFLICT',
  ],
])('%s is refused, and leaves no files', async (_name, manifest, code) => {
  const projectDir = await tempDir();
  const owner = greeter('1.0.0', { id: 'owner', commands: [{ id: 'taken', handler: 'h.js#greet' }] });
  await writeFiles(join(projectDir, 'plugins/owner'), owner);
  const daemon = await startMarketplace({ projectDir, dataDir: join(projectDir, '.svc') });
  await expect(install(daemon, await pluginFolder(greeter('1.0.0', manifest)))).rejects.toMatchObject({
    code,
  });
  expect(await installedFolders(daemon)).toEqual([]);
  expect((await daemon.call(listPlugins)).items.map(({ id }) => id)).toEqual(['owner']);
});

test('a plugin with dependents is not removed', async () => {
  const daemon = await startMarketplace();
  await install(daemon, await pluginFolder());
  await install(
    daemon,
    await pluginFolder(greeter('1.0.0', { id: 'needs', dependencies: { '@acme/greeter': '^1.0.0' } })),
  );
  const needed = { code: 'CONFLICT', details: { dependents: ['needs'] } };
  await expect(daemon.call(uninstallPlugin, { params })).rejects.toMatchObject(needed);
  await expect(daemon.call(disablePlugin, { params })).rejects.toMatchObject(needed);
  const next = await pluginFolder(greeter('2.0.0'));
  await expect(daemon.call(updatePlugin, { params, body: { source: next } })).rejects.toMatchObject({
    code: 'MISSING_DEPENDENCY',
    message: expect.stringContaining('^1.0.0 is required'),
  });
});

test('concurrent installations run one after the other', async () => {
  const daemon = await startMarketplace();
  const ids = ['one', 'two', 'three'];
  const folders = await Promise.all(ids.map((id) => pluginFolder(greeter('1.0.0', { id }))));
  const outcomes = await Promise.allSettled([
    ...folders.map((folder) => install(daemon, folder)),
    install(daemon, folders[0]!),
  ]);
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected']);
  expect(Object.keys((await lockOf(daemon)).plugins).sort()).toEqual([...ids].sort());
  expect((await lockOf(daemon)).revision).toBe(3);
});

test('leftovers of an interrupted installation are removed, and the previous state is kept', async () => {
  const daemon = await startMarketplace();
  await install(daemon, await pluginFolder());
  const [folder] = await installedFolders(daemon);
  await daemon.close();
  const { dataDir } = daemon;
  await mkdir(join(dataDir, 'plugins/.staging-1/plugin'), { recursive: true });
  await writeFiles(join(dataDir, 'plugins/acme__greeter-2.0.0-0000000000000000'), greeter('2.0.0'));
  const again = await startMarketplace({ dataDir });
  expect(await installedFolders(again)).toEqual([folder]);
  expect(await again.call(getPlugin, { params })).toMatchObject({ version: '1.0.0', status: 'loaded' });
});

test('only operators change installed plugins', async () => {
  const daemon = await startMarketplace();
  const source = await pluginFolder();
  const as = (hostId: string) => ({
    headers: serviceHeaders(TEST_KEYS.internalSecret, { hostId, namespaceId: 'acme' }),
  });
  const client = createClient({ url: daemon.url, peer: 'marketplace' });
  for (const call of [
    () => client.call(installPlugin, { body: { source } }, as('ci')),
    () => client.call(planPlugin, { body: { source } }, as('ci')),
    () => client.call(uninstallPlugin, { params }, as('ci')),
    () => client.call(disablePlugin, { params }, as('ci')),
    () => client.call(linkPlugin, { body: { folder: source } }, as('ci')),
  ])
    await expect(call()).rejects.toMatchObject({ code: 'FORBIDDEN' });
  const nobody = await daemon.fetch('/api/v1/marketplace/plugins', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ source }),
  });
  expect(nobody.status).toBe(401);
  expect((await daemon.fetch('/api/v1/marketplace/reload', { method: 'POST' })).status).toBe(401);
  expect(await client.call(installPlugin, { body: { source } }, as('operator'))).toMatchObject({ id: ID });
});

test('a damaged lock file is reported, not overwritten', async () => {
  const daemon = await startMarketplace();
  await install(daemon, await pluginFolder());
  const file = join(daemon.dataDir, 'marketplace.lock.json');
  await writeFile(file, '{"version":1,');
  await expect(daemon.call(listPlugins)).rejects.toMatchObject({ code: 'CONFIG_PARSE_ERROR' });
  await expect(install(daemon, await pluginFolder())).rejects.toMatchObject({ code: 'CONFIG_PARSE_ERROR' });
  expect(await readFile(file, 'utf8')).toBe('{"version":1,');
});

test('lifecycle hooks get the reason; a failing hook changes nothing', async () => {
  const daemon = await startMarketplace();
  const folder = await pluginFolder(
    greeter(
      '1.0.0',
      { lifecycle: { onEnable: 'hooks.js#on', onDisable: 'hooks.js#off' } },
      {
        'hooks.js': `
          import { defineJob } from 'svc-platform/sdk';
          export const on = defineJob((ctx, { reason }) => ctx.log.info('on: ' + reason));
          export const off = (ctx, { reason }) => {
            ctx.log.info('off: ' + reason);
            throw new Error('not today');
          };`,
      },
    ),
  );
  await install(daemon, folder);
  await daemon.call(updatePlugin, { params, body: {} });
  await daemon.call(disablePlugin, { params });
  await daemon.call(enablePlugin, { params });
  await daemon.call(uninstallPlugin, { params });
  const told = daemon.logs.lines
    .map(({ message }) => String(message))
    .filter((text) => /^(?:on|off): /.test(text));
  expect(told).toEqual(['on: installed', 'on: updated', 'off: disabled', 'on: enabled', 'off: uninstalled']);
  expect(daemon.logs.lines).toContainEqual(
    expect.objectContaining({
      event: 'plugin.lifecycle_failed',
      message: expect.stringContaining('not today'),
    }),
  );
  expect((await daemon.call(listPlugins)).items).toEqual([]);
});

test('reinstalling a modified plugin repairs it', async () => {
  const daemon = await startMarketplace();
  const folder = await pluginFolder();
  const { root } = await install(daemon, folder);
  await appendFile(join(root, 'h.js'), '// evil');
  expect(await daemon.call(getPlugin, { params })).toMatchObject({ status: 'broken' });
  const mended = await daemon.call(updatePlugin, { params, body: {} });
  expect(mended).toMatchObject({ status: 'loaded', version: '1.0.0' });
  expect(mended.root).not.toBe(root);
  expect(await readFile(join(mended.root, 'h.js'), 'utf8')).not.toContain('evil');
});

test('a stopping platform ends npm and its child processes', async () => {
  const daemon = await startMarketplace();
  const bin = await tempDir();
  const pids = join(bin, 'pids');
  // As npm does: a program of its own that is at work while it waits.
  await writeFile(join(bin, 'npm'), `#!/bin/sh\nsleep 600 &\necho $$ $! > ${pids}\nwait\n`, { mode: 0o755 });
  const path = process.env.PATH;
  process.env.PATH = `${bin}:${path}`;
  onTestFinished(() => {
    process.env.PATH = path;
  });
  const installing = daemon.call(installPlugin, { body: { source: '@acme/absent' } }).catch((error) => error);
  await expect.poll(() => readFile(pids, 'utf8').catch(() => '')).toMatch(/\d+ \d+\n/);
  await daemon.close();
  expect(await installing).toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  // Whoever is dead may wait to be reaped by the first process of this machine.
  const state = (pid: string) =>
    spawnSync('ps', ['-o', 'stat=', '-p', pid], { encoding: 'utf8' }).stdout.trim();
  for (const pid of (await readFile(pids, 'utf8')).trim().split(' '))
    expect(state(pid)).toMatch(/^(?:Z.*)?$/);
  expect(await readdir(join(daemon.dataDir, 'plugins'))).toEqual([]);
});

/** A plugin whose manifest, and whose handlers, tell that they were run. */
const telltale = (isGreedy = 'false'): Record<string, string | object> => ({
  'package.json': { name: ID, version: '1.0.0', type: 'module', svc: './manifest.js' },
  'manifest.js': `
    console.log('the manifest ran');
    export default {
      schema: 'svc.plugin/3', id: '${ID}', version: '1.0.0',
      permissions: { network: ${isGreedy} ? ['*'] : [] },
      commands: [{ id: 'hello', handler: 'h.js#hello' }],
    };`,
  'h.js': "console.log('the handler ran'); export const hello = () => 1;",
});
const weak = { config: { execution: { worker: { sandbox: 'permission' } } } };
const hasRun = ({ logs }: TestMarketplace, what: string) =>
  JSON.stringify(logs.lines).includes(`the ${what} ran`);

test('without bubblewrap a manifest module runs only after the consent of the operator', async () => {
  const daemon = await startMarketplace(weak);
  const source = await pluginArchive(telltale());
  for (const endpoint of [planPlugin, installPlugin]) {
    await expect(daemon.call(endpoint, { body: { source } })).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('--run-manifest'),
      details: { reason: 'MANIFEST_IS_CODE', module: './manifest.js' },
    });
  }
  expect(hasRun(daemon, 'manifest')).toBe(false);
  const plan = await daemon.call(planPlugin, { body: { source, runManifest: true } });
  expect(plan.warnings).toEqual(['Its manifest is code (./manifest.js), which was run to read it.']);
  const body = { source, runManifest: true, manifestDigest: plan.manifestDigest };
  expect(await daemon.call(installPlugin, { body })).toMatchObject({ manifestModule: './manifest.js' });
});

test('without bubblewrap the code of a plugin is not run to plan its installation', async () => {
  const daemon = await startMarketplace(weak);
  const files = greeter(
    '1.0.0',
    {},
    { 'h.js': "console.log('the handler ran'); export const greet = () => 1;" },
  );
  const source = await pluginArchive(files);
  const plan = await daemon.call(planPlugin, { body: { source } });
  expect(plan.warnings).toEqual([expect.stringContaining('was not run to check it')]);
  expect(hasRun(daemon, 'handler')).toBe(false);
  const stale = { source, manifestDigest: 'sha256-other' };
  await expect(daemon.call(installPlugin, { body: stale })).rejects.toMatchObject({ code: 'CONFLICT' });
  expect(hasRun(daemon, 'handler')).toBe(false);
  await daemon.call(installPlugin, { body: { source, manifestDigest: plan.manifestDigest } });
  await expect.poll(() => hasRun(daemon, 'handler')).toBe(true);
});

test('a manifest module that differs from the approved plan keeps the plugin from loading', async () => {
  const daemon = await startMarketplace();
  const source = await pluginArchive(telltale("!import.meta.url.includes('.staging-')"));
  const plan = await daemon.call(planPlugin, { body: { source, runManifest: true } });
  expect(plan.changes.filter(({ name }) => name.startsWith('network'))).toEqual([]);
  const body = { source, runManifest: true, manifestDigest: plan.manifestDigest };
  expect(await daemon.call(installPlugin, { body })).toMatchObject({
    status: 'broken',
    faults: [
      { code: 'INTEGRITY_MISMATCH', message: expect.stringContaining('differs from the approved one') },
    ],
  });
});

test('the plan shows the reach of a plugin with sockets while the services accept calls without a token', async () => {
  const source = await pluginArchive(greeter('1.0.0', { permissions: { network: ['*'] } }));
  const warningsIn = async (mode: string) => {
    const daemon = await startMarketplace({ config: { auth: { mode } } });
    return (await daemon.call(planPlugin, { body: { source } })).warnings.join(' ');
  };
  expect(await warningsIn('optional')).toContain('runs and jobs of every tenant');
  expect(await warningsIn('required')).not.toContain('every tenant');
});
