import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  disablePlugin,
  installPlugin,
  linkPlugin,
  listPlugins,
  reloadPlugins,
  updatePlugin,
} from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { tempDir } from '../../support/daemon.ts';
import { pluginFolder, startMarketplace, writeFiles } from '../marketplace/support.ts';
import { send, startRest, type TestRest } from './support.ts';

const params = { pluginId: 'clock' as never };

/** A plugin whose route tells which code runs; `slow` waits for what the test writes into its state folder. */
function clockPlugin(version: string, extra: object = {}) {
  return {
    'package.json': { name: 'clock', version, type: 'module' },
    'svc.plugin.json': {
      schema: 'svc.plugin/3',
      id: 'clock',
      version,
      rest: {
        basePath: '/v1/plugins/clock',
        routes: [
          { method: 'GET', path: '/', handler: 'routes.js#version' },
          { method: 'GET', path: '/slow', handler: 'routes.js#slow' },
        ],
      },
      ...extra,
    },
    'routes.js': `
      export const version = () => '${version}';
      export const slow = async () => {
        await new Promise((resolve) => setTimeout(resolve, 1200));
        return 'slow ${version}';
      };`,
  };
}

async function platform() {
  const projectDir = await tempDir();
  const options = { projectDir, dataDir: join(projectDir, '.svc'), peers: createPeers() };
  const marketplace = await startMarketplace(options);
  const rest = await startRest(options);
  options.peers.set({ rest: rest.url });
  return { marketplace, rest, projectDir };
}

const get = async (rest: TestRest, path = '') =>
  (await send(rest, 'GET', `/api/v1/plugins/clock${path}`)).body as unknown;

const NOT_FOUND = { error: expect.objectContaining({ code: 'PLUGIN_NOT_FOUND' }) };

test('plugins are added, changed and removed without a restart; a call in flight finishes on its code', async () => {
  const { marketplace, rest } = await platform();
  expect((await send(rest, 'GET', '/api/v1/plugins/clock')).status).toBe(404);
  await marketplace.call(installPlugin, { body: { source: await pluginFolder(clockPlugin('1.0.0')) } });
  expect(await get(rest)).toBe('1.0.0');

  const slow = get(rest, '/slow');
  await new Promise((resolve) => setTimeout(resolve, 200));
  await marketplace.call(updatePlugin, {
    params,
    body: { source: await pluginFolder(clockPlugin('2.0.0')) },
  });
  expect(await get(rest)).toBe('2.0.0');
  expect(await slow).toBe('slow 1.0.0');

  await marketplace.call(disablePlugin, { params });
  expect(await get(rest)).toEqual(NOT_FOUND);
});

test('a linked folder is reloaded on request; a broken one leaves the running version in place', async () => {
  const { marketplace, rest } = await platform();
  const folder = await pluginFolder(clockPlugin('1.0.0'));
  await marketplace.call(linkPlugin, { body: { folder } });
  expect(await get(rest)).toBe('1.0.0');

  await writeFiles(folder, clockPlugin('1.1.0'));
  await marketplace.call(reloadPlugins);
  expect(await get(rest)).toBe('1.1.0');
  expect(marketplace.services.plugins.registry.find('clock')?.version).toBe('1.1.0');

  await writeFile(join(folder, 'svc.plugin.json'), '{');
  await marketplace.call(reloadPlugins);
  // Both services find it; one of them tells.
  const told = () =>
    [marketplace, rest].map(({ logs }) => logs.lines.find(({ event }) => event === 'plugin.kept')?.level);
  expect(told()).toEqual(['error', 'debug']);
  expect(await get(rest)).toBe('1.1.0');
  const { items } = await marketplace.call(listPlugins);
  expect(items).toMatchObject([
    { id: 'clock', status: 'broken', faults: [{ code: 'INVALID_MANIFEST' }], keptVersion: '1.1.0' },
  ]);

  await writeFiles(folder, clockPlugin('1.2.0'));
  await marketplace.call(reloadPlugins);
  expect(await get(rest)).toBe('1.2.0');
});

test('a broken folder does not block the others', async () => {
  const { marketplace, rest } = await platform();
  const folder = await pluginFolder(clockPlugin('1.0.0'));
  await marketplace.call(linkPlugin, { body: { folder } });
  expect(await get(rest)).toBe('1.0.0');
  await writeFile(join(folder, 'svc.plugin.json'), '{');

  const other = {
    'svc.plugin.json': {
      schema: 'svc.plugin/3',
      id: 'other',
      version: '1.0.0',
      rest: {
        basePath: '/v1/plugins/other',
        routes: [{ method: 'GET', path: '/', handler: 'routes.js#hello' }],
      },
    },
    'package.json': { name: 'other', type: 'module' },
    'routes.js': "export const hello = () => 'hello';",
  };
  await marketplace.call(installPlugin, { body: { source: await pluginFolder(other) } });
  expect((await send(rest, 'GET', '/api/v1/plugins/other')).body).toBe('hello');
  expect(await get(rest)).toBe('1.0.0');
});

test('an installed plugin that was modified is unloaded, although it ran', async () => {
  const { marketplace, rest, projectDir } = await platform();
  const { root } = await marketplace.call(installPlugin, {
    body: { source: await pluginFolder(clockPlugin('1.0.0')) },
  });
  expect(await get(rest)).toBe('1.0.0');
  await writeFile(join(root, 'routes.js'), "export const version = () => 'evil';");
  await marketplace.call(reloadPlugins);
  expect(await get(rest)).toEqual(NOT_FOUND);
  expect((await marketplace.call(listPlugins)).items).toMatchObject([
    { status: 'broken', keptVersion: null },
  ]);
  expect(rest.logs.lines).toContainEqual(
    expect.objectContaining({ event: 'plugin.broken', reasonCode: 'INTEGRITY_MISMATCH' }),
  );
  expect(await readFile(join(projectDir, '.svc/marketplace.lock.json'), 'utf8')).toContain('clock');
});
