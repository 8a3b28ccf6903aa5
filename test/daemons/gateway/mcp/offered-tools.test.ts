import { expect, test, vi } from 'vitest';
import { offeredTools } from '../../../../src/daemons/gateway/mcp/offered-tools.ts';
import { PluginTools } from '../../../../src/daemons/gateway/mcp/plugin-tools.ts';

const call = {} as never;
const command = (id: string) => ({ id, mcp: { expose: true, readOnly: true, destructive: false } });

function start(workflowTools: string[] = []) {
  const describe = vi.fn(async () => ({ input: null, output: null }));
  const plugin = { id: 'shop', manifest: { commands: [command('ship'), command('refund')] } };
  const registry = { plugins: [plugin] };
  const plugins = new PluginTools({
    plugins: { registry, onReload: () => () => {} } as never,
    describe: describe as never,
  });
  const workflows = { list: vi.fn(async () => workflowTools.map((name) => ({ name })) as never) };
  const logger = { warn: vi.fn() };
  return { tools: offeredTools({ plugins, workflows, logger }), describe, workflows, logger };
}

test('a call of a plugin tool costs nothing of the other tools', async () => {
  const { tools, describe, workflows } = start();
  expect(await tools.find(call, 'shop_refund')).toMatchObject({ name: 'shop_refund' });
  expect(describe.mock.calls).toEqual([['shop', 'refund']]);
  expect(workflows.list).not.toHaveBeenCalled();
  expect(await tools.find(call, 'shop_absent')).toBe(undefined);
});

test('tools of plugins win over those of workflows, which is logged once', async () => {
  const { tools, logger } = start(['shop_ship', 'workflow_note']);
  for (let reads = 0; reads < 3; reads++)
    expect((await tools.list(call)).map(({ name }) => name)).toEqual([
      'shop_ship',
      'shop_refund',
      'workflow_note',
    ]);
  expect(logger.warn.mock.calls).toEqual([[expect.stringContaining('shop_ship')]]);
  expect(await tools.find(call, 'shop_ship')).toMatchObject({ title: 'shop: ship' });
  expect(await tools.find(call, 'workflow_note')).toEqual({ name: 'workflow_note' });
});
