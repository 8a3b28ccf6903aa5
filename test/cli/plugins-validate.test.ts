import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listPlugins } from '../../src/contracts/index.ts';
import { startMarketplace, writeFiles } from '../daemons/marketplace/support.ts';
import { tempDir } from '../support/daemon.ts';
import { runSvc } from './svc.ts';

test('svc plugins validate finds bad times, unknown names, keys that never match and URLs for hosts', async () => {
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

test('the config in force is granted to no plugin, whatever its name', async () => {
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
