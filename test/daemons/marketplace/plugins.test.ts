import { cp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { getPlugin, listPlugins } from '../../../src/contracts/index.ts';
import { marketplace } from '../../../src/daemons/marketplace/index.ts';
import { startTestDaemon, tempDir } from '../../support/daemon.ts';
import { openApiFaults } from '../../support/openapi.ts';
import { greeter, writeFiles } from './support.ts';

const PROJECT = join(import.meta.dirname, '../../fixtures/projects/rest');

test('installed plugins are listed by id, broken ones with their fault', async () => {
  const daemon = await startTestDaemon(marketplace, { projectDir: PROJECT });
  const { items, nextCursor } = await daemon.call(listPlugins);
  expect(nextCursor).toBeNull();
  expect(items).toEqual([
    {
      id: '@acme/shop',
      version: '2.1.0',
      origin: 'project',
      source: join(PROJECT, 'plugins/shop'),
      resolved: null,
      integrity: null,
      installedAt: null,
      enabled: true,
      status: 'loaded',
      faults: [],
      keptVersion: null,
      root: join(PROJECT, 'plugins/shop'),
    },
    expect.objectContaining({
      id: 'broken',
      version: null,
      status: 'broken',
      faults: [{ code: 'INVALID_MANIFEST', path: 'webhooks[0].auth', message: expect.any(String) }],
      keptVersion: null,
    }),
    expect.objectContaining({ id: 'squatter', status: 'loaded' }),
  ]);
});

test('a plugin is shown with its contributions', async () => {
  const daemon = await startTestDaemon(marketplace, { projectDir: PROJECT });
  const shop = await daemon.call(getPlugin, { params: { pluginId: '@acme/shop' as never } });
  expect(shop).toMatchObject({
    id: '@acme/shop',
    display: { name: 'Shop', description: 'Routes that tests call' },
    webhooks: [],
    commands: [],
  });
  expect(shop.routes).toContainEqual({ method: 'GET', path: '/api/v1/plugins/shop', security: [] });
  expect(shop.routes).toContainEqual({
    method: 'GET',
    path: '/api/v1/plugins/shop/for-both',
    security: ['oauth', 'token'],
  });
  const broken = await daemon.call(getPlugin, { params: { pluginId: 'broken' as never } });
  expect(broken).toMatchObject({ status: 'broken', faults: [expect.anything()], routes: [] });
  await expect(daemon.call(getPlugin, { params: { pluginId: 'squater' as never } })).rejects.toMatchObject({
    code: 'PLUGIN_NOT_FOUND',
    message: expect.stringContaining('squatter'),
  });
});

test('the list shows the current state on disk', async () => {
  const projectDir = await tempDir();
  await cp(PROJECT, projectDir, { recursive: true });
  const daemon = await startTestDaemon(marketplace, { projectDir });
  expect((await daemon.call(listPlugins)).items).toHaveLength(3);
  await rm(join(projectDir, 'plugins/squatter'), { recursive: true });
  expect((await daemon.call(listPlugins)).items.map(({ id }) => id)).toEqual(['@acme/shop', 'broken']);
});

test('a broken plugin whose previous version runs is listed under its id with that version', async () => {
  const projectDir = await tempDir();
  await cp(PROJECT, projectDir, { recursive: true });
  const daemon = await startTestDaemon(marketplace, { projectDir });
  await writeFile(join(projectDir, 'plugins/shop/svc.plugin.json'), '{');
  const { items } = await daemon.call(listPlugins);
  expect(items).toContainEqual(
    expect.objectContaining({ id: '@acme/shop', status: 'broken', version: null, keptVersion: '2.1.0' }),
  );
  const shop = await daemon.call(getPlugin, { params: { pluginId: '@acme/shop' as never } });
  expect(shop).toMatchObject({ status: 'broken', keptVersion: '2.1.0', display: { name: 'Shop' } });
  expect(shop.faults).toEqual([expect.objectContaining({ code: 'INVALID_MANIFEST' })]);
});

test('when two plugins clash, the running one stays and the new one is reported as broken', async () => {
  const projectDir = await tempDir();
  const command = { commands: [{ id: 'greet', handler: 'h.js#greet' }] };
  const folder = (name: string) => join(projectDir, 'plugins', name);
  await writeFiles(folder('second'), greeter('1.0.0', { id: 'second', ...command }));
  const daemon = await startTestDaemon(marketplace, { projectDir });
  // First by name, so that a start would load it.
  await writeFiles(folder('first'), greeter('1.0.0', { id: 'first', ...command }));
  expect((await daemon.call(listPlugins)).items).toMatchObject([
    { id: 'first', status: 'broken', faults: [{ code: 'PLUGIN_CONFLICT' }], keptVersion: null },
    { id: 'second', status: 'broken', faults: [{ code: 'PLUGIN_CONFLICT' }], keptVersion: '1.0.0' },
  ]);
});

test('the service is alive, guarded, and describes itself', async () => {
  const daemon = await startTestDaemon(marketplace, {
    projectDir: PROJECT,
    config: { auth: { mode: 'required' } },
  });
  expect((await daemon.fetch('/health')).status).toBe(200);
  expect((await daemon.fetch('/metrics')).status).toBe(200);
  expect((await daemon.fetch('/api/v1/marketplace/plugins')).status).toBe(401);
  expect(await openApiFaults(await (await daemon.fetch('/openapi.json')).json())).toEqual([]);
});
