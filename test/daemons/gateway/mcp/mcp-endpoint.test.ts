import type { FastifyRequest } from 'fastify';
import { afterEach, expect, test, vi } from 'vitest';
import { McpEndpoint } from '../../../../src/daemons/gateway/mcp/mcp-endpoint.ts';
import { mcpRequest } from '../../../../src/daemons/gateway/mcp/mcp-request.ts';
import { systemRandom } from '../../../../src/kit/security/random.ts';

const NEWEST = '2026-07-28';
const caller = { hostId: 'agent', namespaceId: 'default' } as never;

/** Creates an endpoint without the other services of a gateway, which these requests do not reach. */
function startEndpoint(parts: object = {}) {
  const logger = { debug: () => {}, warn: vi.fn() };
  const all = {
    internalSecret: 'i'.repeat(40),
    random: systemRandom(),
    workflowTools: async () => [],
    logger,
  };
  Object.defineProperties(all, Object.getOwnPropertyDescriptors(parts));
  return new McpEndpoint({} as never, all as never);
}

/** Returns a request of the newest revision, or of an earlier one without `meta`. */
function requestOf(method: string, params: object, meta: object | undefined): FastifyRequest {
  const _meta = meta && { 'io.modelcontextprotocol/protocolVersion': NEWEST, ...meta };
  const more: Record<string, string> = meta ? { 'mcp-protocol-version': NEWEST, 'mcp-method': method } : {};
  return {
    ...{ id: 'r-1', traceId: 't-1', method: 'POST', url: '/mcp' },
    headers: {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...more },
    },
    body: { jsonrpc: '2.0', id: 1, method, params: { ...params, ...(_meta ? { _meta } : {}) } },
  } as unknown as FastifyRequest;
}

/** Sends a request, and returns its response and a function that ends it. */
async function send(endpoint: McpEndpoint, request: FastifyRequest) {
  const closing: Array<() => void> = [];
  const signal = new AbortController().signal;
  const response = await endpoint.answer(request, caller, {
    signal,
    onClose: (listener) => void closing.push(listener),
  });
  return { response, close: () => closing.forEach((listener) => void listener()) };
}

afterEach(() => void vi.useRealTimers());

test('tools of workflows are polled only while a client listens', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const endpoint = startEndpoint();
  const notifications = { toolsListChanged: true };
  const meta = {
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  // Each timer of the endpoint is an interval: the poll, and the keep-alive of an open stream.
  const refused = await send(endpoint, requestOf('subscriptions/listen', { notifications: 'none' }, meta));
  expect(refused.response.headers.get('content-type')).toMatch(/json/);
  expect(vi.getTimerCount()).toBe(0);
  // Earlier revisions do not know the method. The stream with the error ends like a complete response.
  const unknown = await send(endpoint, requestOf('subscriptions/listen', { notifications }, undefined));
  expect(await unknown.response.text()).toContain('-32601');
  unknown.close();
  expect(vi.getTimerCount()).toBe(0);
  const open = await send(endpoint, requestOf('subscriptions/listen', { notifications }, meta));
  expect(open.response.headers.get('content-type')).toBe('text/event-stream');
  const whileOpen = vi.getTimerCount();
  expect(whileOpen).toBeGreaterThan(0);
  open.close();
  expect(vi.getTimerCount()).toBe(whileOpen - 1);
  await open.response.body?.cancel();
  expect(vi.getTimerCount()).toBe(0);
  await endpoint.close();
});

test('the library is loaded again after a failure', async () => {
  let loads = 0;
  const endpoint = startEndpoint({
    get offers() {
      if (++loads === 1) throw new Error('EMFILE: too many open files');
      return {};
    },
  });
  const request = requestOf('ping', {}, undefined);
  const failed = expect(send(endpoint, request)).rejects.toThrow('EMFILE');
  await Promise.all([failed, endpoint.offersChanged(), endpoint.toolsChanged()]);
  const { response } = await send(endpoint, request);
  expect(await response.text()).toContain('"result":{}');
  await endpoint.close();
});

test('the library gets the headers that it reads, and the signal of the connection', () => {
  const { signal } = new AbortController();
  const headers = {
    ...{ accept: 'application/json', 'content-type': 'application/json', 'mcp-method': 'ping' },
    ...{ authorization: 'Bearer secret', cookie: 'a=b', 'x-forwarded-for': '10.0.0.1' },
  };
  const request = mcpRequest('POST', headers, signal);
  expect([...request.headers.keys()]).toEqual(['accept', 'content-type', 'mcp-method']);
  expect(request.signal).toBe(signal);
});
