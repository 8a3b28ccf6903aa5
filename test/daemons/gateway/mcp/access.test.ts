import { expect, test } from 'vitest';
import {
  createClientCredentials,
  exchangeToken,
  getMcpResource,
  grantRole,
  putItem,
} from '../../../../src/contracts/index.ts';
import { ADMIN_TOKEN, MEMBER_TOKEN, startGateway, type TestGateway } from '../../../support/gateway.ts';
import { callTool, connectTo, errorIn, refusedTool } from '../../../support/mcp.ts';
import { startIssuer } from '../../../support/oauth-issuer.ts';

/** Returns an access token of a new client with these scopes. */
async function tokenWith(gateway: TestGateway, scopes: string[]): Promise<string> {
  const body = { name: 'agent', scopes } as never;
  const { clientId, clientSecret } = await gateway.call(createClientCredentials, { body });
  const reply = await gateway.call(exchangeToken, { body: { clientId, clientSecret } as never });
  return reply.accessToken;
}

const nameAll = async (client: Awaited<ReturnType<typeof connectTo>>) =>
  (await client.listTools()).tools.map(({ name }) => name);

/** Sends a message to the MCP endpoint without the library. */
function post(url: string, headers: Record<string, string>, body: unknown = ping): Promise<Response> {
  return fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}
const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

test('scopes of a client are its list of tools', async () => {
  const gateway = await startGateway();
  const token = await tokenWith(gateway, ['mcp:deliveries_search', 'mcp:events_wait', 'queue:orders']);
  for (const name of ['orders', 'secrets'])
    await gateway.call(putItem, { params: { name }, body: { id: 'i-1', body: 1 } });
  const client = await connectTo(gateway.url, token);
  expect(await nameAll(client)).toEqual(['deliveries_search', 'events_wait']);
  expect((await callTool(client, 'deliveries_search')).items).toEqual([]);
  expect((await callTool(client, 'events_wait', { queue: 'orders', waitMs: 0 })).items).toHaveLength(1);
  // The tool alone does not open other queues.
  expect(await refusedTool(client, 'events_wait', { queue: 'secrets', waitMs: 0 })).toMatchObject({
    code: 'FORBIDDEN',
    details: { neededScope: 'queue:secrets' },
  });
  expect(await refusedTool(client, 'run_start', { workflowId: 'x' })).toMatchObject({ code: 'FORBIDDEN' });
  await expect(
    client.readResource({ uri: 'svc://deliveries/0199aaaa-0000-7000-8000-000000000000' }),
  ).rejects.toThrow(/scope mcp:delivery_show/);
});

test('a viewer gets tools that read, an editor also those that change', async () => {
  const gateway = await startGateway();
  const give = (role: string) =>
    gateway.call(grantRole, { body: { subject: 'host:member', role, namespaceId: 'default' } as never });
  await give('viewer');
  const client = await connectTo(gateway.url, MEMBER_TOKEN);
  expect(await nameAll(client)).toEqual([
    ...['deliveries_search', 'delivery_explain', 'delivery_show', 'logs_search', 'run_show', 'run_wait'],
    ...['runs_list', 'trace_show', 'workflows_list'],
  ]);
  expect(await refusedTool(client, 'delivery_replay', {})).toMatchObject({ code: 'FORBIDDEN' });
  await give('editor');
  // The role was given explicitly, so that destructive tools are offered.
  expect(await nameAll(client)).toContain('run_cancel');
});

test('calls of a token are limited per minute and at the same time', async () => {
  const gateway = await startGateway({
    config: { gateway: { mcp: { callsPerMinute: 8, concurrentCalls: 2 } } },
  });
  const client = await connectTo(gateway.url);
  const wait = { queue: 'empty', waitMs: 300 };
  const codes: string[] = [];
  const calls = Array.from({ length: 20 }, async () => {
    const reply = await client.callTool({ name: 'events_wait', arguments: wait });
    codes.push(reply.isError ? errorIn(reply).error.code : 'ok');
  });
  await expect.poll(() => codes.length, { timeout: 20_000 }).toBe(18);
  gateway.clock.advance(wait.waitMs);
  await Promise.all(calls);
  expect(codes.filter((code) => code === 'ok')).toHaveLength(2);
  expect(codes.filter((code) => code === 'CONCURRENT_LIMIT_EXCEEDED')).toHaveLength(18);
  for (let call = 0; call < 6; call++) await callTool(client, 'deliveries_search');
  expect(await refusedTool(client, 'deliveries_search')).toMatchObject({ code: 'RATE_LIMIT_EXCEEDED' });
  // Other tokens are not affected.
  await callTool(await connectTo(gateway.url, MEMBER_TOKEN), 'deliveries_search');
});

test('resources and completions count as calls of their token', async () => {
  const gateway = await startGateway({ config: { gateway: { mcp: { callsPerMinute: 4 } } } });
  const client = await connectTo(gateway.url);
  const read = () => client.readResource({ uri: 'svc://docs/mcp' });
  const complete = () =>
    client.complete({
      ref: { type: 'ref/resource', uri: 'svc://docs/{page}' },
      argument: { name: 'page', value: 'm' },
    });
  for (const call of [read, complete, read, complete]) await call();
  const data = { code: 'RATE_LIMIT_EXCEEDED' };
  await expect(read()).rejects.toMatchObject({ data });
  await expect(complete()).rejects.toMatchObject({ data });
  await (await connectTo(gateway.url, MEMBER_TOKEN)).readResource({ uri: 'svc://docs/mcp' });
});

test('tokens of the issuer must be for the URL of the endpoint', async () => {
  const issuer = await startIssuer();
  const gateway = await startGateway({
    config: { gateway: { oauth: issuer.config, publicUrl: 'https://svc.example.com' } },
  });
  const resource = 'https://svc.example.com/mcp';
  expect(await (await gateway.fetch(getMcpResource.path)).json()).toMatchObject({
    resource,
    authorization_servers: [issuer.config.issuer],
  });
  const refused = await post(gateway.url, {});
  expect(refused.status).toBe(401);
  expect(refused.headers.get('www-authenticate')).toBe(
    'Bearer resource_metadata="https://svc.example.com/.well-known/oauth-protected-resource/mcp"',
  );
  const now = gateway.clock.now() / 1000;
  const forApi = await issuer.sign({ exp: now + 300 });
  const forMcp = await issuer.sign({ exp: now + 300, aud: resource });
  expect((await post(gateway.url, bearer(forApi))).status).toBe(401);
  expect((await post(gateway.url, bearer(forMcp))).status).toBe(200);
  // The token does not open the REST API.
  const deliveries = `${gateway.url}/api/v1/webhooks/deliveries`;
  expect((await fetch(deliveries, { headers: bearer(forMcp) })).status).toBe(401);
});

test('requests without a token, of foreign pages and of foreign hosts are refused', async () => {
  const gateway = await startGateway();
  expect((await post(gateway.url, {})).status).toBe(401);
  expect((await post(gateway.url, { ...bearer(ADMIN_TOKEN), origin: 'https://evil.example' })).status).toBe(
    403,
  );
  expect((await post(gateway.url, { ...bearer(ADMIN_TOKEN), origin: 'null' })).status).toBe(403);
  expect((await post(gateway.url, { ...bearer(ADMIN_TOKEN), origin: gateway.url })).status).toBe(200);
  expect((await post(gateway.url, { 'x-svc-inner-call': 'guess' })).status).toBe(401);
  expect((await fetch(`${gateway.url}/api/v1/queues`, { headers: { 'x-svc-inner-call': 'x' } })).status).toBe(
    401,
  );
  expect((await gateway.fetch(getMcpResource.path)).status).toBe(404);
  expect((await gateway.fetch('/mcp', { headers: bearer(ADMIN_TOKEN) })).status).toBe(405);
});

test('hostile messages get an error of the protocol', async () => {
  const gateway = await startGateway();
  const send = (body: unknown) => post(gateway.url, bearer(ADMIN_TOKEN), body);
  for (const body of [
    '[',
    '"text"',
    'null',
    '[]',
    '{"jsonrpc":"1.0"}',
    '{"jsonrpc":"2.0","id":{},"method":"ping"}',
  ])
    expect([body, (await send(body)).status]).toEqual([body, 400]);
  const unknown = await send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: '__proto__' } });
  expect(await unknown.text()).toContain('-32602');
  const nested = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'run_show', arguments: {} } };
  const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
  const bomb = JSON.stringify(nested).replace('"arguments":{}', `"arguments":{"runId":${deep}}`);
  expect((await send(bomb)).status).toBeLessThan(500);
});

test('the endpoint can be switched off', async () => {
  const gateway = await startGateway({ config: { gateway: { mcp: { enabled: false } } } });
  expect((await post(gateway.url, bearer(ADMIN_TOKEN))).status).toBe(404);
});
