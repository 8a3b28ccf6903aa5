import { link as hardLink, mkdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Permissions, PlatformConfig } from '../../src/contracts/index.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { createDescriber, loadPlugins, projectSecrets, validatePlugin } from '../../src/plugins/index.ts';
import { resolveGrants } from '../../src/plugins/sandbox/grants.ts';
import { tempDir } from '../support/daemon.ts';
import { requestFor, SANDBOXES, startBackend } from './support.ts';

/** A project with a data folder and a plugin, and a link beside it by which all of it can be named again. */
let project: string;
let link: string;
beforeEach(async () => {
  const folder = await realpath(await tempDir());
  project = join(folder, 'project');
  link = join(folder, 'link');
  await mkdir(join(project, '.svc/plugins/installed'), { recursive: true });
  await mkdir(join(project, 'plugin'));
  await writeFile(join(project, '.svc/keys.json'), '{}');
  await symlink(project, link);
});

const grants = (fs: { read?: string[]; write?: string[] }, dataDir = join(project, '.svc')) =>
  resolveGrants({ root: join(project, 'plugin'), permissions: Permissions.parse({ fs }), dataDir });
const opensData = { code: 'SANDBOX_ERROR', message: expect.stringContaining('would expose the platform') };

describe("the platform's data folder is granted under no name", () => {
  test.each([
    ['itself', '../.svc'],
    ['a folder above', '..'],
    ['the root of all', '/'],
    ['a file in it', '../.svc/keys.json'],
    ['what is not there yet', '../.svc/new/file'],
    ['all that is installed', '../.svc/plugins'],
  ])('%s: %s', async (_what, path) => {
    for (const kind of ['read', 'write'])
      await expect(grants({ [kind]: [path] })).rejects.toMatchObject(opensData);
  });

  test('nor by way of a link, be it the folder that is named so or the path that is asked for', async () => {
    await expect(grants({ read: [join(link, '.svc')] })).rejects.toMatchObject(opensData);
    await expect(grants({ write: [join(link, '.svc/new')] })).rejects.toMatchObject(opensData);
    for (const asked of [project, link, join(project, '.svc/keys.json')])
      await expect(grants({ read: [asked] }, join(link, '.svc'))).rejects.toMatchObject(opensData);
    // A link in the data folder's place, as it is moved to another disk.
    const moved = join(project, 'data');
    await symlink(join(project, '.svc'), moved);
    await expect(grants({ read: ['../.svc'] }, moved)).rejects.toMatchObject(opensData);
  });
});

test.each([
  ['the data folder itself', '.svc'],
  ['a folder that holds it', '.'],
])('nor as a dependency that is a link to %s', async (_what, target) => {
  const plugin = join(project, 'plugin');
  await writeFile(join(plugin, 'package.json'), JSON.stringify({ dependencies: { helpful: '*' } }));
  await mkdir(join(plugin, 'node_modules'));
  await symlink(join(project, target), join(plugin, 'node_modules/helpful'));
  await expect(grants({})).rejects.toMatchObject(opensData);
});

test('what is granted is a real path, also where nothing is yet', async () => {
  const outside = join(project, '../outside');
  await mkdir(outside);
  await symlink(outside, join(project, 'plugin-data'));
  const { write } = await grants({ write: ['../plugin-data/later/file'] });
  expect(write).toEqual([join(outside, 'later/file')]);
});

test.each([
  ['holds the data folder', '.'],
  ['lies in it', '.svc/run'],
])('a plugin whose own folder %s is not started', async (_what, folder) => {
  await mkdir(join(project, '.svc/run'));
  const permissions = Permissions.parse({});
  const started = resolveGrants({ root: join(project, folder), permissions, dataDir: join(project, '.svc') });
  await expect(started).rejects.toMatchObject(opensData);
});

test('a star in a granted path, which Node would read as any name, is refused', async () => {
  await expect(grants({ read: ['../shared-*'] })).rejects.toMatchObject({
    code: 'SANDBOX_ERROR',
    message: expect.stringContaining('contains a "*"'),
  });
});

describe('files with secrets of the platform are granted under no name', () => {
  const secretsOf = (configFile: string | null) =>
    projectSecrets({
      projectDir: project,
      configFile,
      config: PlatformConfig.parse({
        execution: { container: { socket: join(project, 'engine/engine.sock') } },
      }),
      env: { HOME: join(project, 'home') },
    });
  const secretive = (fs: { read?: string[]; write?: string[] }, configFile: string | null = null) =>
    resolveGrants({
      root: join(project, 'plugin'),
      permissions: Permissions.parse({ fs }),
      dataDir: join(project, '.svc'),
      secrets: secretsOf(configFile),
    });
  const opensSecrets = { code: 'SANDBOX_ERROR', message: expect.stringContaining('holds secrets') };
  beforeEach(async () => {
    await mkdir(join(project, 'home/.config/svc/agent'), { recursive: true });
    for (const file of ['.env', 'svc.config.json', 'other.json', 'home/.config/svc/agent/agent.json'])
      await writeFile(join(project, file), '{}');
  });

  test.each([
    ['the environment file', '../.env'],
    ['the config', '../svc.config.json'],
    ["the host agent's registration", '../home/.config/svc/agent/agent.json'],
    ['saved logins that are not there yet', '../home/.config/svc/logins.json'],
    ['a folder above them', '../home'],
    ['the config under another name', '../other.json'],
  ])('%s: %s', async (_what, path) => {
    for (const kind of ['read', 'write'])
      await expect(secretive({ [kind]: [path] }, join(project, 'other.json'))).rejects.toMatchObject(
        opensSecrets,
      );
  });

  test.each(SANDBOXES)(
    'a plugin with all of the network does not reach the container engine by its folder (%s)',
    async (sandbox) => {
      const socket = join(project, 'engine/engine.sock');
      await mkdir(join(project, 'engine'));
      let connections = 0;
      const server = createServer((connection) => {
        connections++;
        connection.end();
      });
      await new Promise<void>((resolve) => server.listen(socket, resolve));
      onTestFinished(() => void server.close());
      const { backend } = await startBackend({ sandbox, secrets: secretsOf(null) });
      const connects = (fs: { read?: string[]; write?: string[] }) =>
        backend.run(
          requestFor('attacks.js#connectsToSocket', { input: socket, permissions: { network: ['*'], fs } }),
        );
      for (const path of [join(project, 'engine'), socket, project])
        for (const kind of ['read', 'write'])
          await expect(connects({ [kind]: [path] })).rejects.toMatchObject({
            code: 'SANDBOX_ERROR',
            message: expect.stringMatching(/container engine's socket|data folder|holds secrets/),
          });
      const ungranted = await connects({});
      expect(ungranted.result).toBe('EACCES');
      expect(connections).toBe(0);
    },
  );

  test('nor by a symbolic link, a hard link, or as what a dependency is a link to', async () => {
    await symlink(join(project, '.env'), join(project, 'plugin/soft'));
    await hardLink(join(project, '.env'), join(project, 'hard'));
    for (const path of ['soft', '../hard', join(link, '.env')])
      await expect(secretive({ read: [path] })).rejects.toMatchObject(opensSecrets);
    await rm(join(project, 'plugin/soft'));
    const manifest = JSON.stringify({ dependencies: { helpful: '*' } });
    await writeFile(join(project, 'plugin/package.json'), manifest);
    await mkdir(join(project, 'plugin/node_modules'));
    await symlink(join(project, 'home'), join(project, 'plugin/node_modules/helpful'));
    await expect(secretive({})).rejects.toMatchObject(opensSecrets);
  });

  test('validating and loading such a plugin tell it, with the place in the manifest', async () => {
    const folder = join(project, 'plugin');
    const manifest = {
      ...{ schema: 'svc.plugin/3', id: 'greedy', version: '1.0.0' },
      commands: [{ id: 'c', handler: 'h.js#c', permissions: { fs: { read: ['.', '../.env'] } } }],
    };
    await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(manifest));
    await writeFile(join(folder, 'h.js'), 'export const c = () => 1;');
    const guarded = { dataDir: join(project, '.svc'), secrets: secretsOf(null) };
    const fault = {
      code: 'INVALID_MANIFEST',
      path: 'commands[0].permissions.fs.read[1]',
      message: expect.stringContaining('holds secrets'),
    };
    const { broken } = await loadPlugins({ projectDir: project, patterns: ['plugin'], ...guarded });
    expect(broken[0]?.faults).toEqual([fault]);
    const { backend } = await startBackend();
    const { faults } = await validatePlugin(folder, createDescriber(backend, systemRandom()), {
      handlersNotRun: 'only the manifest is meant',
      guarded: { ...guarded, root: folder },
    });
    expect(faults).toEqual([fault]);
  });
});
