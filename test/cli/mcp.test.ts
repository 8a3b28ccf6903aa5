import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { StdioBridge } from '../../src/cli/commands/mcp/stdio-bridge.ts';
import type { AnyJson } from '../support/any-json.ts';
import { runCli } from '../support/cli.ts';
import { tempDir } from '../support/daemon.ts';
import { ADMIN_TOKEN, startGateway } from '../support/gateway.ts';
import { startMcp } from '../support/mcp.ts';

/** Returns a bridge to a gateway, and the messages that it has written. */
function bridgeTo(url: string, token = ADMIN_TOKEN) {
  const written: AnyJson[] = [];
  const bridge = new StdioBridge({
    send: ({ headers, ...request }) =>
      fetch(`${url}/mcp`, { ...request, headers: { ...headers, authorization: `Bearer ${token}` } }),
    write: async (line) => void written.push(JSON.parse(line)),
  });
  const send = (message: object) => bridge.take(JSON.stringify({ jsonrpc: '2.0', ...message }));
  return { bridge, written, send };
}

const INITIALIZE = {
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'test', version: '1.0.0' },
  },
};
const NEWEST = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

test('the bridge passes messages of both revisions', { timeout: 30_000 }, async () => {
  const gateway = await startGateway();
  const { bridge, written, send } = bridgeTo(gateway.url);
  send(INITIALIZE);
  await bridge.settled();
  send({ method: 'notifications/initialized' });
  send({ id: 'a', method: 'tools/list' });
  bridge.take('{"jsonrpc":');
  bridge.take('');
  await bridge.settled();
  send({ id: 2, method: 'tools/list', params: { _meta: NEWEST } });
  const params = { name: 'deliveries_search', arguments: {}, _meta: NEWEST };
  send({ id: 3, method: 'tools/call', params });
  await bridge.settled();
  const answer = (id: unknown) => written.find((message) => message.id === id);
  expect(answer(0).result).toMatchObject({ protocolVersion: '2025-11-25', serverInfo: { name: 'svc' } });
  expect(answer('a').result.tools.length).toBeGreaterThan(10);
  expect(answer(2).result.tools.length).toBeGreaterThan(10);
  expect(answer(3).result.structuredContent.result.items).toEqual([]);
  expect(answer(null).error.code).toBe(-32700);
  expect(written).toHaveLength(5);
});

test('a cancelled call ends, and its lease wait with it', { timeout: 30_000 }, async () => {
  const gateway = await startGateway();
  const { bridge, written, send } = bridgeTo(gateway.url);
  const params = { name: 'events_wait', arguments: { queue: 'empty', waitMs: 30_000 } };
  send({ id: 7, method: 'tools/call', params });
  await new Promise((resolve) => setTimeout(resolve, 500));
  send({ method: 'notifications/cancelled', params: { requestId: 7 } });
  // The clock stands still, so that without the cancellation the call would never end.
  await bridge.settled();
  expect(written).toEqual([]);
});

test('a refused token is an error of the request', { timeout: 30_000 }, async () => {
  const gateway = await startGateway();
  const { bridge, written, send } = bridgeTo(gateway.url, 'wrong');
  send({ id: 1, method: 'tools/list' });
  await bridge.settled();
  expect(written).toMatchObject([{ id: 1, error: { message: expect.stringMatching(/answered 401/) } }]);
});

test('a request whose stream ends without an answer gets an error', async () => {
  const answer = { jsonrpc: '2.0', id: 2, result: {} };
  const bodies = [': nothing else\n\n', `data: ${JSON.stringify(answer)}\n\n`];
  const written: AnyJson[] = [];
  const bridge = new StdioBridge({
    send: async () => new Response(bodies.shift(), { headers: { 'content-type': 'text/event-stream' } }),
    write: async (line) => void written.push(JSON.parse(line)),
  });
  for (const id of [1, 2]) bridge.take(JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' }));
  await bridge.settled();
  expect(written).toHaveLength(2);
  expect(written).toContainEqual(answer);
  expect(written).toContainEqual({
    jsonrpc: '2.0',
    id: 1,
    error: {
      code: -32603,
      message:
        'The connection ended before the answer. The call may have taken effect: check its result before you repeat it.',
    },
  });
});

test('a message waits for a gateway that restarts', { timeout: 30_000 }, async () => {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  const { bridge, written, send } = bridgeTo(`http://127.0.0.1:${port}`);
  send({ id: 1, method: 'tools/list' });
  await startGateway({ listen: { host: '127.0.0.1', port } });
  await bridge.settled();
  expect(written[0].result.tools.length).toBeGreaterThan(10);
});

test('mcp stdio is a program for clients, and mcp config prints how they start it', {
  timeout: 60_000,
}, async () => {
  const gateway = await startGateway();
  const folder = { cwd: await tempDir() };
  const flags = ['--url', gateway.url];
  const stdin = `${JSON.stringify({ jsonrpc: '2.0', ...INITIALIZE })}\n`;
  const served = await runCli(['mcp', 'stdio', ...flags, '--token', ADMIN_TOKEN], { ...folder, stdin });
  expect(served.code).toBe(0);
  expect(JSON.parse(served.stdout).result.serverInfo.name).toBe('svc');
  const server = { command: 'svc', args: ['mcp', 'stdio', '--url', gateway.url] };
  const printed = await runCli(['mcp', 'config', 'claude', ...flags], folder);
  expect(JSON.parse(printed.stdout)).toEqual({ mcpServers: { svc: server } });
  const forCode = await runCli(['mcp', 'config', 'vscode', ...flags], folder);
  expect(JSON.parse(forCode.stdout)).toEqual({ servers: { svc: { type: 'stdio', ...server } } });
});

test('the bridge passes questions to the person, and their answers, through a task', {
  timeout: 60_000,
}, async () => {
  const ask = {
    id: 'ask',
    mcp: { expose: true },
    jobs: { main: { steps: [{ id: 'agree', uses: 'approval' }] } },
  };
  const { gateway } = await startMcp({ project: { workflows: { ask } } });
  const { bridge, written, send } = bridgeTo(gateway.url);
  const params = { ...INITIALIZE.params, capabilities: { elicitation: {} } };
  send({ ...INITIALIZE, params });
  await bridge.settled();
  send({ id: 1, method: 'tools/call', params: { name: 'workflow_ask', arguments: {}, task: {} } });
  await bridge.settled();
  const { taskId } = written[1].result.task;
  send({ id: 2, method: 'tasks/result', params: { taskId } });
  await expect
    .poll(() => written.find(({ method }) => method === 'elicitation/create'), { timeout: 20_000 })
    .toBeTruthy();
  const { id } = written.find(({ method }) => method === 'elicitation/create');
  bridge.take(JSON.stringify({ jsonrpc: '2.0', id, result: { action: 'accept', content: {} } }));
  await bridge.settled();
  expect(written.find((message) => message.id === 2).result.structuredContent.status).toBe('succeeded');
  // Methods of tasks repeat the id of the task in a header in the revision 2026-07-28.
  const extensions = { 'io.modelcontextprotocol/tasks': {} };
  const _meta = { ...NEWEST, 'io.modelcontextprotocol/clientCapabilities': { extensions } };
  send({ id: 3, method: 'tasks/get', params: { taskId, _meta } });
  await bridge.settled();
  expect(written.find((message) => message.id === 3).result.status).toBe('completed');
});
