import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { linkPlugin, listPlugins, listWebhooks, unlinkPlugin } from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { hours } from '../../../src/kit/time/duration.ts';
import { readLockFile } from '../../../src/plugins/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { startGateway } from '../../support/gateway.ts';
import { eventually } from '../../support/webhook-senders.ts';
import { asCaller, send, startRest } from '../rest/support.ts';
import { type Files, pluginFolder, startMarketplace, writeFiles } from './support.ts';

const config = { plugins: ['./plugins/*'] };

/** A plugin with a command and a webhook; `tell` answers which code runs. */
function clockPlugin(version: string, manifest: object = {}): Files {
  return {
    'package.json': { name: 'clock', version, type: 'module' },
    'svc.plugin.json': {
      schema: 'svc.plugin/3',
      id: 'clock',
      version,
      commands: [{ id: 'tell', handler: 'h.js#tell' }],
      webhooks: [{ event: 'made', handler: 'h.js#tell', auth: { type: 'secret', header: 'x-token' } }],
      ...manifest,
    },
    'h.js': `export const tell = () => '${version}';`,
  };
}

const COMMON = "const { tell } = require('./lib/common'); module.exports = { tell };";

async function platform() {
  const projectDir = await tempDir();
  const options = { projectDir, dataDir: join(projectDir, '.svc'), peers: createPeers(), config };
  const marketplace = await startMarketplace(options);
  const rest = await startRest(options);
  const gateway = await startGateway(options);
  options.peers.set({ rest: rest.url, gateway: gateway.url });

  async function tell(): Promise<unknown> {
    const { status, body } = await send(rest, 'POST', '/api/v1/commands/clock/tell', {
      body: {},
      headers: asCaller('operator'),
    });
    return (body as { result?: unknown }).result ?? status;
  }
  return {
    folder: join(projectDir, 'plugins/clock'),
    marketplace,
    rest,
    tell,
    list: async () => (await marketplace.call(listPlugins)).items,
    webhooks: async () => (await gateway.call(listWebhooks)).items.map(({ event }) => event),
    revision: async () => (await readLockFile(options.dataDir)).revision,
  };
}

test('a new plugin of the project is loaded by every service without a command', async () => {
  const { folder, tell, webhooks } = await platform();
  expect([await tell(), await webhooks()]).toEqual([404, []]);
  await writeFiles(folder, clockPlugin('1.0.0'));
  await expect.poll(tell, { timeout: 20_000 }).toBe('1.0.0');
  await expect.poll(webhooks, { timeout: 20_000 }).toEqual(['made']);
  await rm(folder, { recursive: true });
  await expect.poll(tell, { timeout: 20_000 }).toBe(404);
});

test('a plugin listed as loaded runs in every service: the next call need not wait', async () => {
  const { folder, tell, list, webhooks } = await platform();
  await writeFiles(folder, clockPlugin('1.0.0'));
  expect(await list()).toMatchObject([{ id: 'clock', status: 'loaded', version: '1.0.0' }]);
  expect([await tell(), await webhooks()]).toEqual(['1.0.0', ['made']]);

  await writeFile(join(folder, 'h.js'), "export const tell = () => 'edited';");
  expect(await list()).toMatchObject([{ status: 'loaded' }]);
  expect(await tell()).toBe('edited');
});

test.each([
  ['a handler with a syntax error', 'h.js', 'export const tell = () => {'],
  ['a handler that throws while it is loaded', 'h.js', 'export const tell = () => nothing(); nothing();'],
  ['an unreadable manifest', 'svc.plugin.json', '{'],
])('%s shows as broken beside the version that still runs', async (_what, file, text) => {
  const { folder, tell, list } = await platform();
  await writeFiles(folder, clockPlugin('1.0.0'));
  expect(await list()).toMatchObject([{ status: 'loaded' }]);
  expect(await tell()).toBe('1.0.0');

  await writeFile(join(folder, file), text);
  expect(await list()).toMatchObject([
    {
      id: 'clock',
      status: 'broken',
      faults: expect.arrayContaining([expect.anything()]),
      keptVersion: '1.0.0',
    },
  ]);
  expect(await tell()).toBe('1.0.0');

  await writeFiles(folder, clockPlugin('1.0.1'));
  expect(await list()).toMatchObject([{ status: 'loaded', version: '1.0.1', faults: [] }]);
  expect(await tell()).toBe('1.0.1');
});

test.each([
  ['JavaScript', {}],
  ['TypeScript', { 'h.js': "export { tell } from './lib/tell.ts';" }],
  ['CommonJS', { 'package.json': { name: 'clock', version: '1.0.0' }, 'h.js': COMMON }],
])('the version that still runs needs none of its files: %s', async (_what, files) => {
  const { folder, tell, list, rest } = await platform();
  const started = "const started = Math.random(); export const tell = (): string => '1.0.0 ' + started;";
  await writeFiles(folder, {
    ...clockPlugin('1.0.0'),
    'h.js': "export { tell } from './lib/tell.js';",
    'lib/tell.js': started.replace(': string', ''),
    'lib/tell.ts': started,
    'lib/common.js': "const started = Math.random(); exports.tell = () => '1.0.0 ' + started;",
    ...files,
  });
  expect(await list()).toMatchObject([{ status: 'loaded' }]);

  await writeFile(join(folder, 'h.js'), 'export const tell = () => {');
  await rm(join(folder, 'lib'), { recursive: true });
  expect(await list()).toMatchObject([{ status: 'broken', keptVersion: '1.0.0' }]);
  // No process of it has run yet; the next one starts after an idle time.
  const first = await tell();
  expect(first).toMatch(/^1\.0\.0 /);
  await eventually(async () => {
    rest.clock.advance(hours(1));
    const next = await tell();
    expect(next).toMatch(/^1\.0\.0 /);
    expect(next).not.toBe(first);
  });

  await writeFiles(folder, clockPlugin('1.0.1'));
  expect(await list()).toMatchObject([{ status: 'loaded', version: '1.0.1' }]);
  expect(await tell()).toBe('1.0.1');
});

test('a linked folder is watched too; linking it is one change', async () => {
  const { marketplace, tell, list, revision } = await platform();
  const folder = await pluginFolder(clockPlugin('1.0.0'));
  await marketplace.call(linkPlugin, { body: { folder } });
  await list();
  expect(await revision()).toBe(1);
  // A process that runs the old code shows the edit only once the watch has replaced it.
  expect(await tell()).toBe('1.0.0');
  await writeFile(join(folder, 'h.js'), "export const tell = () => 'edited';");
  await expect.poll(tell, { timeout: 20_000 }).toBe('edited');
  expect(await revision()).toBe(2);
  await marketplace.call(unlinkPlugin, { params: { pluginId: 'clock' as never } });
  await list();
  expect(await revision()).toBe(3);
});

const WRITE = { permissions: { fs: { write: ['./data'] } } };
const OWN_WRITE = { commands: [{ id: 'tell', handler: 'h.js#tell', ...WRITE }] };

/** The same plugin with its manifest as a module. */
function asModule({ 'svc.plugin.json': manifest, 'package.json': about, ...files }: Files): Files {
  return {
    ...files,
    'package.json': { ...(about as object), svc: './manifest.js' },
    'manifest.js': `export default ${JSON.stringify(manifest)};`,
  };
}

test.each([
  ['the plugin', clockPlugin('1.0.0', WRITE)],
  ['one of its commands', clockPlugin('1.0.0', OWN_WRITE)],
  [
    'one of its routes',
    clockPlugin('1.0.0', {
      rest: {
        basePath: '/v1/plugins/clock',
        routes: [{ method: 'GET', path: '/', handler: 'h.js#tell', ...WRITE }],
      },
    }),
  ],
  ['a manifest that is a module', asModule(clockPlugin('1.0.0', OWN_WRITE))],
])('files that %s may write, hidden files and dependencies trigger no reload', async (_what, files) => {
  const { folder, list, revision } = await platform();
  await writeFiles(folder, files);
  expect(await list()).toMatchObject([{ status: 'loaded' }]);
  await writeFiles(folder, { 'data/kept.json': '{}' });
  await list();
  const before = await revision();
  await writeFiles(folder, {
    'data/kept.json': '{"n":1}',
    'data/more.json': '{}',
    '.cache/x.json': '{}',
    'node_modules/zod/index.js': '',
    'notes.txt': 'no source',
  });
  await list();
  expect(await revision()).toBe(before);
  await writeFiles(folder, { 'lib/deep/helper.js': '' });
  await list();
  expect(await revision()).toBe(before + 1);
});
