import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listPlugins } from '../../src/contracts/index.ts';
import { startMarketplace, writeFiles } from '../daemons/marketplace/support.ts';
import { tempDir } from '../support/daemon.ts';
import { testPlatform } from './platform.ts';
import { runSvc } from './svc.ts';

const of = (id: string, more: object) => ({ schema: 'svc.plugin/3', id, version: '1.0.0', ...more });
const HANDLER = 'export const run = () => 1;';
const STOCK = {
  'package.json': { type: 'module' },
  'svc.plugin.json': of('stock', {
    commands: [{ id: 'count', handler: 'h.js#run' }],
    jobs: [{ id: 'tally', handler: 'h.js#run' }],
    webhooks: [{ event: 'moved', handler: 'h.js#run', auth: { type: 'secret', header: 'x-s' } }],
  }),
  'h.js': HANDLER,
};
/** Names of plugins, commands, jobs and webhooks, half of which are misspelt. */
const SHOP = {
  'package.json': { type: 'module' },
  'svc.plugin.json': of('shop', {
    permissions: { invoke: ['stock/count', 'stock/cuont', 'optional/any'] },
    commands: [{ id: 'sell', handler: 'h.js#run', permissions: { invoke: ['stock/tally', 'stock/tlly'] } }],
    workflows: [
      {
        id: 'restock',
        on: {
          webhook: [
            { pluginId: 'stock', event: 'moved' },
            { pluginId: 'stock', event: 'mvoed' },
          ],
        },
        jobs: {
          a: {
            steps: [
              { uses: 'stock/count' },
              { uses: 'stock/cuont' },
              { uses: 'job:stock/tlly' },
              { uses: 'away/go' },
            ],
          },
        },
      },
    ],
  }),
  'h.js': HANDLER,
};
const MISSPELT = {
  'permissions.invoke[1]': 'the plugin stock has no command or job "cuont"; it has count, tally',
  'commands[0].permissions.invoke[1]': 'the plugin stock has no command or job "tlly"; it has count, tally',
  'workflows[0].jobs.a.steps[1].uses': 'the plugin stock has no command "cuont"; there is count',
  'workflows[0].jobs.a.steps[2].uses': 'the plugin stock has no job "tlly"; there is tally',
  'workflows[0].on.webhook[1]': 'the plugin stock declares no webhook "mvoed"; there is moved',
};
const ABSENT = { 'workflows[0].jobs.a.steps[3].uses': 'there is no plugin "away" that runs' };

async function faultsOf(
  folder: string,
  plugin: string,
  env: Record<string, string> = {},
): Promise<Record<string, string>> {
  const { json } = await runSvc(folder, ['plugins', 'validate', plugin, '--json'], env);
  const faults: Array<Record<string, string>> = json.ok ? [] : json.error.details.faults;
  return Object.fromEntries(faults.map(({ path, message }) => [path, message]));
}

test('names are resolved among the plugins of the project; missing ones are reported once it has a data folder', async () => {
  const folder = await tempDir();
  await writeFile(join(folder, 'svc.config.json'), '{}');
  await writeFiles(join(folder, 'plugins/stock'), STOCK);
  const shop = await writeFiles(join(folder, 'plugins/shop'), SHOP);
  // In a clone the plugins that are installed elsewhere are not known.
  expect(await faultsOf(folder, shop)).toEqual(MISSPELT);
  await mkdir(join(folder, '.svc'), { mode: 0o700 });
  expect(await faultsOf(folder, shop)).toEqual({ ...MISSPELT, ...ABSENT });
});

test('workflows of schedules and of handlers of ended runs are resolved among plugins and files of the project', async () => {
  const folder = await tempDir();
  await writeFile(join(folder, 'svc.config.json'), '{}');
  const workflow = (id: string) => ({ id, jobs: { a: { steps: [{ uses: 'set' }] } } });
  await writeFiles(folder, {
    'workflows/in-file.yaml': 'id: in-file\njobs: {a: {steps: [{uses: set}]}}\n',
    'plugins/stock/svc.plugin.json': of('stock', { workflows: [workflow('of-stock')] }),
  });
  const names = ['own', 'of-stock', 'in-file', 'in-fiel'];
  const shop = await writeFiles(join(folder, 'plugins/shop'), {
    'svc.plugin.json': of('shop', {
      permissions: { platform: { workflows: true } },
      workflows: [{ ...workflow('own'), on: { failure: names.map((name) => ({ workflow: name })) } }],
      schedules: names.map((name) => ({ workflow: name, cron: '0 3 * * *' })),
    }),
  });
  expect(await faultsOf(folder, shop)).toEqual({});
  await mkdir(join(folder, '.svc'), { mode: 0o700 });
  expect(await faultsOf(folder, shop)).toEqual({
    'schedules[3].workflow': 'workflow "in-fiel" does not exist',
    'workflows[0].on.failure[3].workflow': 'workflow "in-fiel" does not exist',
  });
});

test('dependencies and commands of other plugins of the project are validated', async () => {
  const folder = await tempDir();
  await writeFile(join(folder, 'svc.config.json'), '{}');
  await writeFiles(join(folder, 'plugins/stock'), STOCK);
  // Of two that clash the one that is found first stays.
  const manifest = of('wares', {
    dependencies: { stock: '^2.0.0', away: '^1.0.0' },
    commands: [{ id: 'count', handler: 'h.js#run' }],
  });
  const wares = await writeFiles(join(folder, 'plugins/wares'), { ...SHOP, 'svc.plugin.json': manifest });
  const taken = { 'commands[0].id': 'The command "count" already belongs to the plugin stock.' };
  expect(await faultsOf(folder, wares)).toEqual(taken);
  await writeFile(join(wares, 'svc.plugin.json'), JSON.stringify({ ...manifest, commands: [] }));
  await mkdir(join(folder, '.svc'), { mode: 0o700 });
  expect(await faultsOf(folder, wares)).toEqual({
    'dependencies.stock': 'The plugin stock has version 1.0.0, but ^2.0.0 is required.',
    'dependencies.away': 'The plugin away (^1.0.0) is required, but it is not installed.',
  });
});

test('outside a project names are resolved at the current gateway', async () => {
  const { folder, svc } = await testPlatform();
  await writeFiles(join(folder, 'plugins/stock'), STOCK);
  await svc('up', '-d');
  const { env } = (await svc('status', '--env')).json.result;
  const shop = await writeFiles(join(await tempDir(), 'shop'), SHOP);
  expect(await faultsOf(shop, '.')).toEqual({});
  expect(await faultsOf(shop, '.', env)).toEqual({ ...MISSPELT, ...ABSENT });
  // One that does not answer says nothing of the names.
  expect(await faultsOf(shop, '.', { SVC_GATEWAY_URL: 'http://127.0.0.1:1' })).toEqual({});
});

test('svc plugins validate finds invalid times, unknown names, keys that never match and invalid host URLs', async () => {
  const folder = await tempDir();
  const manifest = (more: object) =>
    writeFile(
      join(folder, 'svc.plugin.json'),
      JSON.stringify({ schema: 'svc.plugin/3', id: 'demo', version: '1.0.0', ...more }),
    );
  const faults = async (): Promise<Record<string, string>> => {
    const { json } = await runSvc(folder, ['plugins', 'validate', '--json']);
    return Object.fromEntries(
      json.error.details.faults.map(({ path, message }: Record<string, string>) => [path, message]),
    );
  };
  await manifest({
    workflows: [
      {
        id: 'nightly',
        on: { schedule: [{ cron: '61 * * * *' }] },
        jobs: { a: { steps: [{ uses: 'htp' }] } },
      },
      {
        id: 'lost',
        on: { webhook: { pluginId: 'demo', event: 'gone' } },
        jobs: { a: { steps: [{ uses: 'demo/gone' }] } },
      },
    ],
    schedules: [{ workflow: 'nightly', cron: 'often' }],
  });
  expect(await faults()).toEqual({
    'workflows[0].on.schedule[0].cron': expect.any(String),
    'workflows[0].jobs.a.steps[0].uses': expect.stringContaining('nothing runs "htp"'),
    'workflows[1].jobs.a.steps[0].uses': 'the plugin demo has no command "gone"',
    'workflows[1].on.webhook': 'the plugin demo declares no webhook "gone"',
    'schedules[0].cron': expect.any(String),
  });
  await manifest({
    permissions: { network: ['https://api.example.com/v1'] },
    webhooks: [
      {
        event: 'order',
        handler: 'main.js#order',
        auth: { type: 'secret', header: 'x-secret' },
        idempotencyKey: 'headers.x-id',
      },
    ],
  });
  expect(await faults()).toMatchObject({
    'permissions.network[0]': 'must be a host such as "api.example.com", not a URL',
    'webhooks[0].idempotencyKey': expect.stringContaining('write "header:<name>"'),
  });
});

test('no plugin is granted the active config file, whatever its name', async () => {
  const reader = {
    'svc.plugin.json': {
      ...{ schema: 'svc.plugin/3', id: 'reader', version: '1.0.0' },
      commands: [{ id: 'read', handler: 'h.js#read', permissions: { fs: { read: ['../../prod.json'] } } }],
    },
    'h.js': 'export const read = () => 1;',
  };
  const project = await tempDir();
  await writeFiles(join(project, 'plugins/reader'), reader);
  const configFile = join(project, 'prod.json');
  await writeFile(configFile, '{}');
  const fault = {
    path: 'commands[0].permissions.fs.read[0]',
    message: expect.stringContaining('prod.json, which holds secrets of the platform'),
  };
  const { json } = await runSvc(project, [
    ...['plugins', 'validate', 'plugins/reader'],
    ...['--config', 'prod.json', '--json'],
  ]);
  expect(json.error.details.faults).toEqual([expect.objectContaining(fault)]);

  const options = { projectDir: project, config: { plugins: ['plugins/*'] } };
  const statusUnder = async (more: { configFile?: string }) => {
    const { call } = await startMarketplace({ ...options, ...more, dataDir: await tempDir() });
    return (await call(listPlugins)).items[0];
  };
  expect(await statusUnder({})).toMatchObject({ status: 'loaded' });
  expect(await statusUnder({ configFile })).toMatchObject({
    status: 'broken',
    faults: [expect.objectContaining(fault)],
  });
});

test('a plugin that may start programs only in a sandbox is invalid where no such sandbox is in use', async () => {
  const folder = await tempDir();
  const execution = { worker: { sandbox: 'permission' } };
  const platform = { childProcess: 'sandboxed' };
  await writeFiles(folder, {
    'svc.config.json': { execution },
    'plugins/hooks/svc.plugin.json': of('hooks', {
      permissions: { platform },
      commands: [{ id: 'go', handler: 'h.js#run' }],
    }),
    'plugins/hooks/h.js': HANDLER,
  });
  const refused = await runSvc(folder, ['plugins', 'validate', 'plugins/hooks', '--json']);
  expect(refused.json.error).toMatchObject({
    code: 'SANDBOX_ERROR',
    details: { faults: [{ path: 'permissions.platform.childProcess' }] },
  });
  const plugins = { hooks: { backend: 'container' } };
  await writeFiles(folder, { 'svc.config.json': { execution: { ...execution, plugins } } });
  expect((await runSvc(folder, ['plugins', 'validate', 'plugins/hooks', '--json'])).json.ok).toBe(true);
});
