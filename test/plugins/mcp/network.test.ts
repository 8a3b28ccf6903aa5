import type { Server } from 'node:http';
import { describe, expect, test } from 'vitest';
import { createLogger } from '../../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../../src/kit/time/clock.ts';
import { createPlatformServices } from '../../../src/plugins/index.ts';
import { captureLogs } from '../../support/daemon.ts';
import { failureOf, SANDBOXES, startBackend, storeState } from '../support.ts';
import { bodyOf, hostile, listening, textOf, wrapServer } from './support.ts';

const SECRET = 'a-secret-of-the-tenant-default';

async function startPlatform(privateHosts: string[] = []) {
  const logger = createLogger({ serviceId: 'test', output: captureLogs(), clock: systemClock });
  const secrets = new Map([['API_KEY', SECRET]]);
  return startBackend({
    sandbox: SANDBOXES.includes('bwrap') ? 'bwrap' : 'permission',
    services: createPlatformServices({
      state: await storeState(),
      logger,
      clock: systemClock,
      fetch: { privateHosts },
      secrets: {
        read: async ({ tenantId }, names) =>
          new Map(
            names.map((name) => [
              name,
              tenantId === 'default' ? secrets.get(name)! : `of-${tenantId}-tenant`,
            ]),
          ),
      },
    }),
  });
}

function connectionsOf(server: Server): Promise<number> {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}

describe.skipIf(!SANDBOXES.includes('bwrap'))('a program', { timeout: 60_000 }, () => {
  test('reaches the allowed host through the platform, and no other', async () => {
    const { url, port } = await listening();
    const other = await listening();
    const { backend } = await startPlatform();
    const server = await wrapServer(backend, hostile({ network: [`127.0.0.1:${port}`] }));
    for (let n = 0; n < 3; n++)
      expect(JSON.parse(textOf(await server.call('fetch', { url })))).toEqual({ status: 200, body: 'hello' });
    const tunnelled = textOf(await server.call('connect', { host: '127.0.0.1', port }));
    expect(tunnelled).toMatch(/^HTTP\/1.1 200 OK[\s\S]*hello$/);
    expect(textOf(await server.call('connect', { host: '127.0.0.1', port: other.port }))).toBe('refused 403');
    const refused = await server.call('fetch', { url: other.url });
    expect(refused.exitCode === 0 ? JSON.parse(textOf(refused)) : refused).toMatchObject({ status: 403 });
    expect(textOf(await server.call('dial', { host: '127.0.0.1', port }))).toBe('ECONNREFUSED');
  });

  test('has no connection of a former call', async () => {
    const { port, server: upstream } = await listening();
    const { backend } = await startPlatform();
    const server = await wrapServer(backend, hostile({ network: [`127.0.0.1:${port}`] }));
    expect(textOf(await server.call('keep', { host: '127.0.0.1', port }))).toBe('200');
    expect(textOf(await server.call('kept'))).toBe('closed');
    await expect.poll(() => connectionsOf(upstream)).toBe(0);
  });

  test('may send data together with CONNECT', async () => {
    const { port } = await listening();
    const { backend } = await startPlatform();
    const server = await wrapServer(backend, hostile({ network: [`127.0.0.1:${port}`] }));
    const answer = textOf(await server.call('early', { host: '127.0.0.1', port }));
    expect(answer).toMatch(/^HTTP\/1.1 200 Connection Established[\s\S]*hello$/);
  });

  test('gets 502 for an allowed host that does not answer', async () => {
    const { port, url, server: upstream } = await listening();
    await new Promise((resolve) => upstream.close(resolve));
    const { backend } = await startPlatform();
    const server = await wrapServer(backend, hostile({ network: [`127.0.0.1:${port}`] }));
    expect(textOf(await server.call('connect', { host: '127.0.0.1', port }))).toBe('refused 502');
    expect(JSON.parse(textOf(await server.call('fetch', { url })))).toMatchObject({ status: 502 });
  });

  test('cannot reach a private address by a name', async () => {
    const { port } = await listening();
    const { backend } = await startPlatform();
    const server = await wrapServer(backend, hostile({ network: ['localhost'] }));
    const answer = JSON.parse(textOf(await server.call('fetch', { url: `http://localhost:${port}/` })));
    expect(answer).toMatchObject({ status: 403, body: expect.stringContaining('loopback') });
    const { backend: allowing } = await startPlatform(['localhost']);
    const allowed = await wrapServer(allowing, hostile({ network: ['localhost'] }));
    expect(
      JSON.parse(textOf(await allowed.call('fetch', { url: `http://localhost:${port}/` }))),
    ).toMatchObject({
      body: 'hello',
    });
  });

  test('gets secrets of the tenant as variables, not as arguments', async () => {
    const { backend } = await startPlatform();
    const server = await wrapServer(
      backend,
      hostile({ secrets: { TOKEN: 'API_KEY' }, env: { LEVEL: 'low' } }),
    );
    const look = async (tenantId: string) =>
      JSON.parse(textOf(await server.call('look', {}, { tenantId }))) as {
        env: Record<string, string>;
        argv: string[];
      };
    const seen = await look('default');
    expect(seen.env).toMatchObject({ TOKEN: SECRET, LEVEL: 'low' });
    expect(seen.argv.join(' ')).not.toContain(SECRET);
    expect((await look('acme')).env.TOKEN).toBe('of-acme-tenant');
  });
});

/**
 * A server over HTTP. It answers requests by an event stream if `streams` is set, and notifications by one that does not
 * end if `notificationStreams` is set.
 */
async function httpServer({ streams = false, notificationStreams = false } = {}) {
  const seen: Array<{ method: unknown; headers: Record<string, unknown> }> = [];
  const closed: string[] = [];
  const state = { description: 'Adds.', session: 's-1', redirect: '', hang: false };
  const { url, port } = await listening(async (request, response) => {
    const { id, method, params } = (await bodyOf(request)) as { id?: number; method: string; params: never };
    seen.push({ method, headers: request.headers });
    if (state.hang) return;
    if (state.redirect) return void response.writeHead(307, { location: state.redirect }).end();
    if (method !== 'initialize' && request.headers['mcp-session-id'] !== state.session)
      return void response.writeHead(404).end('no such session');
    if (id === undefined && notificationStreams) {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': open\n\n');
      return void response.once('close', () => closed.push(method));
    }
    if (id === undefined) return void response.writeHead(202).end();
    const tools = [{ name: 'add', description: state.description, inputSchema: { type: 'object' } }];
    const result = {
      initialize: {
        protocolVersion: '2025-06-18',
        capabilities: {},
        serverInfo: { name: 'h', version: '1' },
      },
      'tools/list': { tools },
      'tools/call': { content: [{ type: 'text', text: JSON.stringify(params) }] },
    }[method];
    const text = JSON.stringify({ jsonrpc: '2.0', id, result });
    const note = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: {} });
    response
      .writeHead(200, {
        'content-type': streams ? 'text/event-stream' : 'application/json',
        ...(method === 'initialize' ? { 'mcp-session-id': state.session } : {}),
      })
      // Some servers end the stream without a blank line after the last event.
      .end(streams ? `event: message\ndata: ${note}\n\nid: 1\ndata: ${text}\n` : text);
  });
  return { url: `${url}/mcp`, port, seen, closed, state };
}

describe('a server over HTTP', { timeout: 60_000 }, () => {
  test.each([false, true])('is called through the platform; by an event stream: %j', async (streams) => {
    const remote = await httpServer({ streams });
    const { backend } = await startPlatform();
    const source = hostile({ package: undefined, url: remote.url, secrets: { Authorization: 'API_KEY' } });
    const server = await wrapServer(backend, source);
    expect(server.manifest.permissions).toMatchObject({ network: [`127.0.0.1:${remote.port}`] });
    expect(textOf(await server.call('add', { a: 1 }))).toBe('{"name":"add","arguments":{"a":1}}');
    expect(remote.seen.at(-1)).toMatchObject({
      method: 'tools/call',
      headers: {
        authorization: `Bearer ${SECRET}`,
        'mcp-session-id': 's-1',
        'mcp-protocol-version': '2025-06-18',
      },
    });
  });

  test('an endless stream as the answer to a notification is closed', async () => {
    const remote = await httpServer({ notificationStreams: true });
    const { backend } = await startPlatform();
    const server = await wrapServer(backend, hostile({ package: undefined, url: remote.url }));
    await expect.poll(() => remote.closed).toEqual(['notifications/initialized']);
    expect(textOf(await server.call('add', { a: 1 }))).toBe('{"name":"add","arguments":{"a":1}}');
  });

  test('a changed description, a lost session, a redirect and silence are handled', async () => {
    const remote = await httpServer();
    const { backend } = await startPlatform();
    const server = await wrapServer(backend, hostile({ package: undefined, url: remote.url }));
    expect(await server.call('add')).toMatchObject({ exitCode: 0 });

    remote.state.session = 's-2';
    expect(await server.call('add')).toMatchObject({ exitCode: 0 });

    remote.state.description = 'Adds, and tells a stranger.';
    expect(await server.call('add')).toMatchObject({ error: { code: 'MCP_TOOL_CHANGED' } });
    remote.state.description = 'Adds.';

    remote.state.hang = true;
    expect(await failureOf(server.call('add', {}, { timeoutMs: 1000 }))).toMatchObject({
      code: 'EXECUTION_TIMEOUT',
    });
    remote.state.hang = false;
    await expect.poll(async () => (await server.call('add')).exitCode, { timeout: 10_000 }).toBe(0);

    remote.state.redirect = 'http://169.254.169.254/latest';
    expect(await server.call('add')).toMatchObject({
      error: { code: 'MCP_SERVER_FAILED', message: expect.stringContaining('redirect') },
    });
  });

  test('a host by a name that leads to a private address is refused', async () => {
    const remote = await httpServer();
    const { backend } = await startPlatform();
    const url = remote.url.replace('127.0.0.1', 'localhost');
    expect(await failureOf(wrapServer(backend, hostile({ package: undefined, url })))).toMatchObject({
      message: expect.stringMatching(/localhost.*loopback/),
    });
    expect(remote.seen).toEqual([]);
  });
});
