import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listWorkflows, PLATFORM_TOOL_NAMES } from '../../../../src/contracts/index.ts';
import { PLATFORM_TOOLS } from '../../../../src/daemons/gateway/mcp/catalog.ts';
import { checkManifest } from '../../../../src/plugins/registry/manifest-file.ts';
import { MEMBER_TOKEN } from '../../../support/gateway.ts';
import { callTool, ERAS, refusedTool, startMcp } from '../../../support/mcp.ts';

const mcp = { expose: true, title: 'Ship', description: 'Ships an order.' };
const command = (id: string, more: object = {}) => ({
  ...{ id, handler: `shop.js#${id.replace(/\W/g, '')}` },
  mcp,
  ...more,
});
const PROJECT = {
  manifest: {
    commands: [
      command('ship', { input: { $ref: 'schemas.json#/ship' }, output: { $ref: 'schemas.json#/shipped' } }),
      command('refund', { mcp: { ...mcp, destructive: true } }),
      command('stock', { mcp: { ...mcp, readOnly: true, name: 'stock' } }),
      { id: 'hidden', handler: 'shop.js#stock' },
    ],
  },
  code: `
import { defineCommand, ok, fail } from 'svc-platform/sdk';
export const ship = defineCommand(async (ctx, { order }) => {
  if (order === 'lost') return fail('ORDER_LOST', 'the order is lost');
  return ok({ shipped: order, tenant: ctx.tenantId ?? null });
});
export const refund = defineCommand(async () => ok({ refunded: true }));
export const stock = defineCommand(async () => ok('x'.repeat(200_000).match(/.{1,1000}/g)));
`,
  files: {
    'schemas.json': {
      ship: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
      shipped: { type: 'object', properties: { shipped: { type: 'string' } }, required: ['shipped'] },
    },
  },
  workflows: {
    deliver: {
      id: 'deliver',
      description: 'Delivers an order.',
      mcp: { expose: true },
      inputs: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
      jobs: { main: { steps: [{ id: 'keep', uses: 'set', with: { text: 'kept' } }] } },
    },
    // The same tool name as above.
    later: {
      id: 'later',
      mcp: { expose: true, name: 'workflow_deliver' },
      jobs: { main: { steps: [{ uses: 'set' }] } },
    },
  },
};

test.each(ERAS)('commands and workflows that opt in are tools: %j', { timeout: 60_000 }, async (era) => {
  const { connect } = await startMcp({ project: PROJECT });
  const client = await connect(undefined, era);
  const { tools } = await client.listTools();
  const own = tools.filter(({ name }) => !PLATFORM_TOOL_NAMES.includes(name));
  expect(own).toMatchObject([
    { name: 'acme_shop_refund', annotations: { destructiveHint: true, readOnlyHint: false } },
    {
      name: 'acme_shop_ship',
      title: 'Ship',
      description: 'Ships an order.',
      inputSchema: { required: ['order'] },
      outputSchema: { required: ['shipped'] },
    },
    { name: 'stock', annotations: { readOnlyHint: true } },
    { name: 'workflow_deliver', inputSchema: { required: ['order'] } },
  ]);
  expect(await callTool(client, 'acme_shop_ship', { order: 'o-1' })).toMatchObject({ shipped: 'o-1' });
  expect(await refusedTool(client, 'acme_shop_ship', { order: 'lost' })).toMatchObject({
    code: 'EXECUTION_ERROR',
    message: 'the order is lost',
    details: { code: 'ORDER_LOST' },
  });
  expect(await refusedTool(client, 'acme_shop_ship', { order: 5 })).toMatchObject({
    code: 'VALIDATION_ERROR',
  });
  expect(await refusedTool(client, 'stock')).toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
  const { runId } = await callTool(client, 'workflow_deliver', { order: 'o-1' });
  expect((await callTool(client, 'run_wait', { runId })).run.status).toBe('succeeded');
  expect(await refusedTool(client, 'workflow_deliver', { order: 1 })).toMatchObject({
    code: 'VALIDATION_ERROR',
  });

  const member = await connect(MEMBER_TOKEN, era);
  const names = (await member.listTools()).tools.map(({ name }) => name);
  expect(names).toContain('acme_shop_ship');
  expect(names).not.toContain('acme_shop_refund');
  expect(await refusedTool(member, 'acme_shop_refund')).toMatchObject({ code: 'FORBIDDEN' });
});

test('a workflow whose tool name is taken is refused', { timeout: 60_000 }, async () => {
  const { workflow } = await startMcp({ project: PROJECT });
  const { faults } = await workflow.call(listWorkflows);
  expect(faults.map(({ message }) => message)).toEqual([
    expect.stringMatching(/has the tool name "workflow_deliver" too: set mcp.name/),
  ]);
});

test('a manifest cannot take a name of the platform, a name twice, or one that is too long', () => {
  const messageOf = (...commands: object[]) =>
    checkManifest({ schema: 'svc.plugin/3', id: '@acme/shop', version: '1.0.0', commands }).faults.map(
      ({ path, message }) => `${path}: ${message}`,
    );
  expect(messageOf(command('ship'))).toEqual([]);
  expect(messageOf(command('a', { mcp: { expose: true, name: 'run_cancel' } }))).toEqual([
    'commands[0].mcp: the platform has a tool "run_cancel" of its own: set mcp.name',
  ]);
  expect(messageOf(command('a.b'), command('a:b'))).toEqual([
    'commands[1].mcp: the command "a.b" has the tool name "acme_shop_a_b" too: set mcp.name',
  ]);
  expect(messageOf(command('x'.repeat(60)))[0]).toMatch(/has 70 characters, at most 48 are allowed/);
  expect(messageOf(command('a', { mcp: { expose: true, name: 'Run' } }))[0]).toMatch(/1 to 48/);
});

test('the list of reserved names is that of the tools of the platform', () => {
  expect(PLATFORM_TOOLS.map(({ name }) => name).toSorted()).toEqual(PLATFORM_TOOL_NAMES);
});

test('clients that listen hear of changed tools', { timeout: 60_000 }, async () => {
  const { connect, gateway, projectDir } = await startMcp({ project: PROJECT });
  const client = await connect(undefined, ERAS[1]);
  let changes = 0;
  client.setNotificationHandler('notifications/tools/list_changed', () => void changes++);
  const listening = await client.listen({ toolsListChanged: true });
  const file = join(projectDir, 'plugins/shop/svc.plugin.json');
  const manifest = JSON.parse(await readFile(file, 'utf8'));
  await writeFile(file, JSON.stringify({ ...manifest, commands: manifest.commands.slice(1) }));
  const services = gateway.services as { plugins: { reload(): Promise<void> } };
  await services.plugins.reload();
  await expect.poll(() => changes, { timeout: 10_000 }).toBeGreaterThan(0);
  await listening.close();
});
