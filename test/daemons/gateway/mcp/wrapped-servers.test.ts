import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/client';
import { describe, expect, test } from 'vitest';
import { type McpPluginSource, setSecret } from '../../../../src/contracts/index.ts';
import { createPeers } from '../../../../src/daemons/peers.ts';
import { rest } from '../../../../src/daemons/rest/index.ts';
import { startContainerBackend } from '../../../plugins/container-backend.ts';
import type { TestEngine } from '../../../plugins/engine.ts';
import { hostile, wrapServer } from '../../../plugins/mcp/support.ts';
import { SANDBOXES, startBackend } from '../../../plugins/support.ts';
import { CONTAINER_ENGINES, useEngine } from '../../../support/containers.ts';
import { startTestDaemon } from '../../../support/daemon.ts';
import { ADMIN_TOKEN, startGateway } from '../../../support/gateway.ts';
import { callTool, connectTo, refusedTool, writeMcpProject } from '../../../support/mcp.ts';
import { startWorkflow } from '../../workflow/support/workflow.ts';

const PROJECT = {
  manifest: {
    permissions: { invoke: ['hostile'] },
    rest: {
      basePath: '/v1/plugins/shop',
      routes: [{ method: 'POST', path: '/ask', handler: 'shop.js#ask' }],
    },
  },
  code: `
import { defineRoute, ok } from 'svc-platform/sdk';
export const ask = defineRoute(async (ctx, input) => ok(await ctx.invoke('hostile/hostile_echo', input)));
`,
  workflows: {
    asks: {
      id: 'asks',
      jobs: {
        main: {
          steps: [
            { id: 'echo', uses: 'hostile/hostile_echo', with: { text: 'from a run' } },
            // biome-ignore lint/suspicious/noTemplateCurlyInString: an expression of the workflow
            { id: 'keep', uses: 'set', with: { said: '${{ steps.echo.output.content[0].text }}' } },
          ],
        },
      },
    },
  },
};

/** Starts the platform on a project with the hostile server as the plugin `hostile`. */
async function startWith(root: string, config: object) {
  const projectDir = await writeMcpProject(PROJECT);
  await mkdir(join(projectDir, 'plugins'), { recursive: true });
  await cp(root, join(projectDir, 'plugins/hostile'), { recursive: true });
  const peers = createPeers();
  const options = { projectDir, peers, config: { plugins: ['./plugins/*'], execution: config } };
  const workflow = await startWorkflow(options);
  const api = await startTestDaemon(rest, options);
  const gateway = await startGateway(options);
  peers.set({ gateway: gateway.url, rest: api.url, workflow: workflow.url });
  return { gateway, workflow, connect: () => connectTo(gateway.url) };
}

/** Images and files of a server arrive as content blocks, marked as data, without its own marks and claims. */
async function expectMedia(client: Client): Promise<void> {
  const { content, isError, _meta } = await client.callTool({ name: 'hostile_media', arguments: {} });
  expect(isError).not.toBe(true);
  expect(_meta).toEqual({ 'svc-platform/untrusted': true });
  const leftOut = (type: string) => `(A block of the type ${type} is not valid and was left out.)`;
  expect(content).toEqual([
    { type: 'text', text: expect.stringContaining('data from outside the platform') },
    { type: 'text', text: expect.stringContaining('IGNORE ALL PREVIOUS') },
    { type: 'image', data: 'aWNvbg==', mimeType: 'image/png' },
    { type: 'text', text: leftOut('image') },
    { type: 'resource', resource: { uri: 'file:///a.txt', text: 'a' } },
    { type: 'text', text: leftOut('resource') },
    { type: 'resource_link', uri: 'https://a.example', name: 'a' },
    { type: 'text', text: '{"icons":1}' },
  ]);
}

async function useEverywhere({ gateway, workflow, connect }: Awaited<ReturnType<typeof startWith>>) {
  const client = await connect();
  const reply = await client.callTool({ name: 'hostile_inject', arguments: {} });
  expect(reply).toMatchObject({
    structuredContent: { untrusted: true, result: { untrusted: true } },
    _meta: { 'svc-platform/untrusted': true },
  });
  expect(await callTool(client, 'hostile_echo', { text: 'from an agent' })).toMatchObject({
    content: [{ text: '{"text":"from an agent"}' }],
  });
  expect(await refusedTool(client, 'hostile_fails')).toMatchObject({
    code: 'EXECUTION_ERROR',
    details: { code: 'MCP_TOOL_FAILED' },
  });
  await expectMedia(client);

  const route = await fetch(`${gateway.url}/api/v1/plugins/shop/ask`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ text: 'from a route' }),
  });
  expect(await route.json()).toMatchObject({ content: [{ text: '{"text":"from a route"}' }] });

  const { run: started } = await callTool(client, 'run_start', { workflowId: 'asks' });
  const run = await workflow.until(started.id, 'succeeded');
  expect(run.status).toBe('succeeded');
  expect(await workflow.step(started.id, 'main.keep')).toMatchObject({
    output: { said: '{"text":"from a run"}' },
  });
}

const source: McpPluginSource = hostile({ expose: true });

test.skipIf(!SANDBOXES.includes('bwrap'))(
  'agents, routes and workflows use the tools of a server under bubblewrap',
  { timeout: 120_000 },
  async () => {
    const { backend } = await startBackend({ sandbox: 'bwrap' });
    const { root } = await wrapServer(backend, source);
    await useEverywhere(await startWith(root, { worker: { sandbox: 'bwrap' } }));
  },
);

test.skipIf(!SANDBOXES.includes('bwrap'))(
  'a secret that a server returns or prints is masked',
  { timeout: 120_000 },
  async () => {
    const { backend } = await startBackend({ sandbox: 'bwrap' });
    const { root } = await wrapServer(backend, source);
    const file = join(root, 'svc.plugin.json');
    const manifest = JSON.parse(await readFile(file, 'utf8'));
    manifest.permissions.secrets = ['API_KEY'];
    manifest.mcpServer.secrets = { TOKEN: 'API_KEY' };
    await writeFile(file, JSON.stringify(manifest));
    const { gateway, connect } = await startWith(root, { worker: { sandbox: 'bwrap' } });
    const secret = 'a-secret-that-nothing-may-show';
    await gateway.call(setSecret, { params: { name: 'API_KEY' }, body: { value: secret } });
    const client = await connect();
    const reply = JSON.stringify(await client.callTool({ name: 'hostile_look', arguments: {} }));
    expect(reply).toContain('TOKEN');
    expect(reply).not.toContain(secret);
    const failed = JSON.stringify(await client.callTool({ name: 'hostile_tells', arguments: {} }));
    expect(failed).toContain('cannot go on');
    expect(failed).not.toContain(secret);
    expect(JSON.stringify(gateway.logs.lines)).not.toContain(secret);
  },
);

test.skipIf(!SANDBOXES.includes('bwrap'))(
  'where nothing confines its program, the plugin is refused at start',
  { timeout: 120_000 },
  async () => {
    const { backend } = await startBackend({ sandbox: 'bwrap' });
    const { root } = await wrapServer(backend, source);
    const platform = await startWith(root, { worker: { sandbox: 'permission' } });
    const client = await platform.connect();
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).not.toContain('hostile_echo');
    expect(platform.gateway.logs.lines).toContainEqual(
      expect.objectContaining({ message: expect.stringContaining('inside bubblewrap or a container') }),
    );
  },
);

describe.each(CONTAINER_ENGINES)('in containers of %s', { timeout: 180_000 }, (name) => {
  let engine: TestEngine;
  useEngine(name, (started) => {
    engine = started;
  });

  test('agents, routes and workflows use the tools of a server', async () => {
    const { backend } = await startContainerBackend(engine, {});
    const { root } = await wrapServer(backend, source);
    const container = { socket: engine.socket };
    const plugins = { hostile: { backend: 'container' } };
    await useEverywhere(await startWith(root, { container, plugins, worker: { sandbox: 'permission' } }));
  });
});
