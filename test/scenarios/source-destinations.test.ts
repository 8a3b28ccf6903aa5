import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import {
  connectSource,
  createSource,
  getDelivery,
  listDeliveries,
  listRuns,
  SOURCES_PLUGIN_ID,
  type SourceName,
} from '../../src/contracts/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { cel, startWorkflow } from '../daemons/workflow/support/workflow.ts';
import { tempDir } from '../support/daemon.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { sendAsGitHub } from '../support/source-senders.ts';

const COMMANDS = fileURLToPath(new URL('../fixtures/projects/commands', import.meta.url));
const params = { name: 'gh' as SourceName };

/** Returns the newest delivery to a destination once it has ended. */
async function ended(gateway: TestGateway, destination: string) {
  const find = async () => {
    const { items } = await gateway.call(listDeliveries, { query: { pluginId: SOURCES_PLUGIN_ID } });
    return items.find(({ instanceId }) => instanceId === destination);
  };
  await expect
    .poll(
      async () => {
        gateway.clock.advance(1000);
        return (await find())?.status;
      },
      { timeout: 20_000 },
    )
    .toMatch(/^(succeeded|failed|dead)$/);
  const { webhookId } = (await find())!;
  return gateway.call(getDelivery, { params: { webhookId } });
}

test('a destination of a command runs the command of the plugin with the body', async () => {
  const gateway = await startGateway({ projectDir: COMMANDS });
  onTestFinished(() => gateway.close());
  const { url, secret } = await gateway.call(createSource, { body: { ...params, provider: 'github' } });
  const connect = (name: string, command: string) =>
    gateway.call(connectSource, { params, body: { name, command } });
  await connect('count', '@acme/counter/count');
  await connect('none', '@acme/counter/nothing');
  expect((await sendAsGitHub(url, secret, { add: 41 }, 'd-1')).status).toBe(202);
  const counted = await ended(gateway, 'count');
  expect(counted.outcome).toMatchObject({
    result: { result: { counted: 42, tenant: 'default', user: null } },
  });
  expect(counted.status).toBe('succeeded');
  expect((await ended(gateway, 'none')).status).toBe('dead');
});

test('a destination of a workflow starts one run with the payload', async () => {
  const projectDir = await tempDir();
  await mkdir(join(projectDir, 'workflows'));
  const definition = {
    id: 'on-push',
    jobs: { main: { steps: [{ id: 'note', uses: 'set', with: { ref: cel('input.ref') } }] } },
  };
  await writeFile(join(projectDir, 'workflows/on-push.yaml'), JSON.stringify(definition));
  const workflow = await startWorkflow({ projectDir });
  const gateway = await startGateway({ projectDir, peers: createPeers({ workflow: workflow.url }) });
  onTestFinished(() => gateway.close());
  const { url, secret } = await gateway.call(createSource, { body: { ...params, provider: 'github' } });
  await gateway.call(connectSource, { params, body: { workflow: 'on-push' } });
  expect((await sendAsGitHub(url, secret, { ref: 'main' }, 'd-1')).status).toBe(202);
  const delivery = await ended(gateway, 'workflow');
  const { items } = await workflow.call(listRuns, { query: { limit: 50 } as never });
  expect(items).toMatchObject([{ workflowId: 'on-push', input: { ref: 'main' } }]);
  expect(delivery.outcome).toMatchObject({ result: { runId: items[0]!.id } });
  await workflow.until(items[0]!.id, 'succeeded');
});
