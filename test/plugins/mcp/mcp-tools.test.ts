import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { toolDigest } from '../../../src/plugins/index.ts';
import type { McpCall } from '../../../src/plugins/runner/mcp/mcp-call.ts';
import { McpTools } from '../../../src/plugins/runner/mcp/mcp-tools.ts';
import { tempDir } from '../../support/daemon.ts';

const ADD = { name: 'add', inputSchema: { type: 'object' } };

/**
 * A server over HTTP in this process. `answer` returns the result of a request or a whole response, or undefined for no
 * answer.
 */
async function serverOf(answer: (method: string, session: string) => unknown) {
  const seen: string[] = [];
  let sessions = 0;
  const fetch = (async (_url: string, { headers, body }: RequestInit) => {
    const { id, method } = JSON.parse(String(body)) as { id?: number; method: string };
    const isNew = method === 'initialize';
    const session = isNew ? `s-${++sessions}` : new Headers(headers).get('mcp-session-id')!;
    seen.push(method);
    const result = isNew ? { protocolVersion: '2025-11-25' } : await answer(method, session);
    if (result instanceof Response) return result;
    if (id === undefined) {
      seen.push(`${method} received`);
      return new Response(null, { status: 202 });
    }
    if (result === undefined) await new Promise(() => {});
    return Response.json({ jsonrpc: '2.0', id, result }, { headers: { 'mcp-session-id': session } });
  }) as typeof globalThis.fetch;
  const root = await tempDir();
  const mcpServer = { url: 'https://mcp.example/', tools: [{ ...ADD, digest: toolDigest(ADD) }] };
  await writeFile(join(root, 'svc.plugin.json'), JSON.stringify({ id: 'sums', mcpServer }));
  const call = (): McpCall =>
    ({
      context: { executionId: 'e', signal: new AbortController().signal, fetch },
      calls: {},
    }) as unknown as McpCall;
  return { seen, call, tools: new McpTools(root) };
}

test('a server that does not list its tools is started again', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const hanging = new Set<string>();
  const { seen, call, tools } = await serverOf((method, session) => {
    if (method !== 'tools/list') return { content: [] };
    return hanging.has(session) ? undefined : { tools: [ADD] };
  });
  expect(await tools.run('add', {}, call())).toMatchObject({ exitCode: 0 });

  hanging.add('s-1');
  const failing = tools.run('add', {}, call());
  await vi.advanceTimersByTimeAsync(20_000);
  expect(await failing).toMatchObject({
    error: {
      code: 'MCP_SERVER_FAILED',
      message: expect.stringContaining('did not list its tools within 20 s'),
    },
  });
  await vi.advanceTimersByTimeAsync(500);
  expect(await tools.run('add', {}, call())).toMatchObject({ exitCode: 0 });
  expect(seen.filter((method) => method === 'initialize')).toHaveLength(2);
});

test('no request is sent before the server has received that the handshake is done', async () => {
  const { seen, call, tools } = await serverOf(async (method) => {
    if (method.startsWith('notifications/')) await delay(20);
    return method === 'tools/list' ? { tools: [ADD] } : {};
  });
  await tools.list(call());
  expect(seen).toEqual([
    'initialize',
    'notifications/initialized',
    'notifications/initialized received',
    'tools/list',
  ]);
});

test('a server that refuses the end of the handshake receives no requests, and is started again', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let isRefusing = true;
  const { seen, call, tools } = await serverOf((method) => {
    if (method === 'notifications/initialized' && isRefusing) return new Response('not now', { status: 503 });
    return method === 'tools/list' ? { tools: [ADD] } : { content: [] };
  });
  expect(await tools.run('add', {}, call())).toMatchObject({
    error: {
      code: 'MCP_SERVER_FAILED',
      message: expect.stringContaining(
        'did not accept "notifications/initialized": it answered 503: not now.',
      ),
    },
  });
  expect(seen).toEqual(['initialize', 'notifications/initialized']);
  isRefusing = false;
  await vi.advanceTimersByTimeAsync(500);
  expect(await tools.run('add', {}, call())).toMatchObject({ exitCode: 0 });
});

test('a text in the response to a notification is ignored', async () => {
  const { call, tools } = await serverOf((method) =>
    method === 'tools/list' ? { tools: [ADD] } : new Response('Accepted', { status: 202 }),
  );
  expect(await tools.list(call())).toMatchObject([ADD]);
});

test.each([
  ['inputSchema', { inputSchema: { type: 'object', properties: { n: { type: 'nonsense' } } } }],
  ['outputSchema', { outputSchema: { type: 'object', properties: { n: { minimum: 'one' } } } }],
])('a tool is refused whose %s does not compile', async (name, more) => {
  const { call, tools } = await serverOf(() => ({ tools: [{ ...ADD, ...more }] }));
  await expect(tools.list(call())).rejects.toMatchObject({
    code: 'EXECUTION_ERROR',
    message: expect.stringContaining(`its tool "add" is refused: its ${name} cannot be compiled: `),
  });
});
