import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  disablePlugin,
  enablePlugin,
  installPlugin,
  linkPlugin,
  listWebhooks,
  listWorkflows,
  provisionWebhook,
  reloadPlugins,
  startRun,
  uninstallPlugin,
  unlinkPlugin,
  updatePlugin,
} from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { tempDir } from '../../support/daemon.ts';
import { deliver, startGateway } from '../../support/gateway.ts';
import { startProcesses } from '../gateway/support/start-processes.ts';
import { asCaller, send, startRest } from '../rest/support.ts';
import { startWorkflow } from '../workflow/support/workflow.ts';
import { type Files, pluginFolder, startMarketplace, writeFiles } from './support.ts';

const params = { pluginId: 'clock' as never };

/** A plugin of which each service has something: a route, a command, a webhook, and a workflow that the webhook starts. */
function clockPlugin(version: string): Files {
  return {
    'package.json': { name: 'clock', version, type: 'module' },
    'svc.plugin.json': {
      schema: 'svc.plugin/3',
      id: 'clock',
      version,
      commands: [{ id: 'tell', handler: 'h.js#tell' }],
      rest: {
        basePath: '/v1/plugins/clock',
        routes: [{ method: 'GET', path: '/', handler: 'h.js#tell', security: ['none'] }],
      },
      webhooks: [{ event: 'made', handler: 'h.js#tell', auth: { type: 'secret', header: 'x-token' } }],
      workflows: [
        {
          id: 'clock-run',
          version,
          on: { webhook: { pluginId: 'clock', event: 'made' } },
          jobs: { main: { steps: [{ id: 'one', uses: 'set', with: { version } }] } },
        },
      ],
    },
    'h.js': `export const tell = () => '${version}';`,
  };
}

/** The services on one project, who know of each other as the supervisor would tell them. */
async function platform() {
  const projectDir = await tempDir();
  const options = { projectDir, dataDir: join(projectDir, '.svc'), peers: createPeers() };
  const marketplace = await startMarketplace(options);
  const rest = await startRest(options);
  const workflow = await startWorkflow(options);
  options.peers.set({ rest: rest.url, workflow: workflow.url });
  const gateway = await startGateway({ ...options, config: { gateway: { publicPluginRoutes: true } } });
  options.peers.set({ gateway: gateway.url });

  /** What each service knows of the plugin, asked once. */
  async function seen() {
    const command = await send(rest, 'POST', '/api/v1/commands/clock/tell', {
      body: {},
      headers: asCaller('operator'),
    });
    const run = await workflow.call(startRun, { body: { workflowId: 'clock-run' } as never }).then(
      ({ run }) => run.status,
      ({ code }) => code,
    );
    const { items: workflows } = await workflow.call(listWorkflows);
    const publicRoute = await gateway.fetch('/api/v1/plugins/clock');
    return {
      route: (await send(rest, 'GET', '/api/v1/plugins/clock')).status,
      publicRoute: publicRoute.status,
      command: (command.body as { result?: unknown }).result ?? command.status,
      webhooks: (await gateway.call(listWebhooks)).items.map(({ event }) => event),
      delivery: (await deliver(gateway, { pluginId: 'clock', event: 'made' })).status,
      run,
      workflows: workflows.map(({ version }) => version),
    };
  }
  return { marketplace, gateway, workflow, seen };
}

const there = (version: string) => ({
  route: 200,
  publicRoute: 200,
  command: version,
  webhooks: ['made'],
  delivery: 401,
  run: 'queued',
  workflows: [version],
});
const GONE = {
  route: 404,
  publicRoute: 401,
  command: 404,
  webhooks: [],
  delivery: 404,
  run: 'WORKFLOW_NOT_FOUND',
  workflows: [],
};

test('after a confirmed change every service has it: the next call need not wait', async () => {
  const { marketplace, seen } = await platform();
  expect(await seen()).toEqual(GONE);

  const folder = await pluginFolder(clockPlugin('1.0.0'));
  await marketplace.call(linkPlugin, { body: { folder } });
  expect(await seen()).toEqual(there('1.0.0'));
  await writeFiles(folder, clockPlugin('1.1.0'));
  await marketplace.call(reloadPlugins);
  expect(await seen()).toEqual(there('1.1.0'));
  await marketplace.call(unlinkPlugin, { params });
  expect(await seen()).toEqual(GONE);

  await marketplace.call(installPlugin, { body: { source: await pluginFolder(clockPlugin('2.0.0')) } });
  expect(await seen()).toEqual(there('2.0.0'));
  await marketplace.call(updatePlugin, {
    params,
    body: { source: await pluginFolder(clockPlugin('3.0.0')) },
  });
  expect(await seen()).toEqual(there('3.0.0'));
  await marketplace.call(disablePlugin, { params });
  expect(await seen()).toEqual(GONE);
  await marketplace.call(enablePlugin, { params });
  expect(await seen()).toEqual(there('3.0.0'));
  await marketplace.call(uninstallPlugin, { params });
  expect(await seen()).toEqual(GONE);
}, 60_000);

test('the first delivery to a newly linked webhook starts its workflow', async () => {
  const { marketplace, gateway, workflow } = await platform();
  // The gateway has just asked which webhooks start workflows, and would not ask again for two seconds.
  const before = clockPlugin('1.0.0');
  Object.assign(before['svc.plugin.json']!, { workflows: [] });
  const folder = await pluginFolder(before);
  await marketplace.call(linkPlugin, { body: { folder } });
  const { secret } = await gateway.call(provisionWebhook, {
    body: { pluginId: 'clock', event: 'made' } as never,
  });
  const send = async () => (await deliver(gateway, { pluginId: 'clock', event: 'made', secret })).status;
  expect(await send()).toBe(200);
  expect(await workflow.services.runs.list('default', {} as never)).toMatchObject({ items: [] });

  await writeFiles(folder, clockPlugin('1.1.0'));
  await marketplace.call(reloadPlugins);
  expect(await send()).toBe(200);
  expect((await workflow.services.runs.list('default', {} as never)).items).toHaveLength(1);
});

test('each process of a gateway has it', { timeout: 60_000 }, async () => {
  const gateway = await startProcesses();
  await gateway.allUp();
  const { dataDir } = gateway;
  const peers = createPeers({ gateway: gateway.url });
  const marketplace = await startMarketplace({ dataDir, projectDir: dataDir, peers });
  const { primary, sibling } = await gateway.connections();
  const statuses = () =>
    Promise.all(
      [primary, sibling].map(async (each) => {
        const headers = { 'x-svc-namespace': 'default' };
        return (await each.send('POST', '/webhooks/clock/made', { headers, body: '{}' })).status;
      }),
    );
  expect(await statuses()).toEqual([404, 404]);
  await marketplace.call(linkPlugin, { body: { folder: await pluginFolder(clockPlugin('1.0.0')) } });
  expect(await statuses()).toEqual([401, 401]);
  await marketplace.call(unlinkPlugin, { params });
  expect(await statuses()).toEqual([404, 404]);
});

test('an unreachable service delays no change, and is logged', async () => {
  const peers = createPeers({ rest: 'http://127.0.0.1:1' });
  const marketplace = await startMarketplace({ peers });
  const folder = await pluginFolder(clockPlugin('1.0.0'));
  expect(await marketplace.call(linkPlugin, { body: { folder } })).toMatchObject({ status: 'loaded' });
  expect(marketplace.logs.lines).toContainEqual(
    expect.objectContaining({ level: 'warn', message: expect.stringContaining('The rest service has not') }),
  );
});

test('only the platform itself triggers a reload: unauthenticated requests cause no work', async () => {
  const { gateway } = await platform();
  const rest = await startRest();
  for (const service of [gateway, rest]) {
    const asked = await service.fetch('/internal/plugins/reread', { method: 'POST' });
    expect(asked.status).toBe(401);
  }
});
