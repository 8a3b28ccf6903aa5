import { describe, expect, test } from 'vitest';
import { getMessage, listMessages, listWorkflows, startRun } from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { tempDir } from '../../support/daemon.ts';
import { startGateway } from '../../support/gateway.ts';
import { writeCodePlugin } from './support/code.ts';
import { startWorkflow } from './support/workflow.ts';

describe('a plugin', () => {
  const SOURCE = `export const flow = defineWorkflow({ id: 'flow', run: async () => fail('NO_STOCK', 'None is left.') });`;
  const manifest = (more: object) => ({
    workflows: [
      { id: 'flow', handler: 'flows.js#flow', on: { failure: { message: { type: 'stock.empty' } } } },
    ],
    ...more,
  });
  const faultsOf = async (more: object) => {
    const projectDir = await tempDir();
    await writeCodePlugin(projectDir, SOURCE, manifest(more));
    const gateway = await startGateway();
    const it = await startWorkflow({ projectDir, peers: createPeers({ gateway: gateway.url }) });
    const { faults } = await it.call(listWorkflows);
    return { it, gateway, faults: faults.map(({ path, message }) => `${path} ${message}`) };
  };

  test('sends messages that its manifest declares, from workflows in code', async () => {
    const { it, gateway, faults } = await faultsOf({
      permissions: { platform: { emit: true } },
      events: { 'stock.empty': {} },
    });
    expect(faults).toEqual([]);
    const { run } = await it.call(startRun, { body: { workflowId: 'flow' } });
    await it.until(run.id, 'failed');
    await expect.poll(() => it.eventTypes(run.id)).toContain('run.message_sent');
    const { items } = await gateway.call(listMessages, { query: {} as never });
    const { data } = await gateway.call(getMessage, { params: { id: items[0]!.id as never } });
    expect(data).toMatchObject({ id: run.id, workflowId: 'flow', error: { code: 'NO_STOCK' } });
  });

  test('registers no workflow that would send undeclared messages', async () => {
    expect(
      (await faultsOf({ permissions: { platform: { emit: true } }, events: { 'stock.emty': {} } })).faults,
    ).toEqual([
      'on.failure.message.type "stock.empty" is not declared under "events" of the manifest of code; did you mean "stock.emty"?',
    ]);
    expect((await faultsOf({ events: { 'stock.empty': {} } })).faults).toEqual([
      'on.failure.message.type needs permissions.platform.emit in the manifest of code',
    ]);
  });
});
