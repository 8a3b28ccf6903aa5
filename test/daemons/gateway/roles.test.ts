import { expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import {
  createClientCredentials,
  ENDPOINT_ACCESS,
  type Endpoint,
  exchangeToken,
  grantRole,
  installPlugin,
  listClients,
  listDeliveries,
  listHosts,
  listRoles,
  listTokens,
  listWebhooks,
  mintToken,
  pauseWebhook,
  provisionWebhook,
  type Role,
  registerHost,
  revokeRole,
  setClientScopes,
  startRun,
  streamDeliveries,
  whoAmI,
} from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { TEST_OPERATOR, type TestDaemonOptions, tempDir } from '../../support/daemon.ts';
import { placeEmptyDatabase } from '../../support/empty-database.ts';
import { ADMIN_TOKEN, MEMBER_TOKEN, startGateway, type TestGateway } from '../../support/gateway.ts';
import { migratedPostgres } from '../../support/migrated-postgres.ts';
import { startIssuer } from '../../support/oauth-issuer.ts';
import { POSTGRES_PROGRAMS } from '../../support/postgres.ts';
import { startUpstream } from './support/echo-upstream.ts';

const CO_ADMIN = 'test-second-admin-token';
const CO_TOKENS = {
  [ADMIN_TOKEN]: { hostId: 'operator', namespaceId: 'default' },
  [MEMBER_TOKEN]: { hostId: 'member', namespaceId: 'default' },
  [CO_ADMIN]: { hostId: 'boss', namespaceId: 'default' },
};

async function start(options: TestDaemonOptions = {}) {
  const upstream = await startUpstream();
  const { gateway: section, ...config } = (options.config ?? {}) as Record<string, object>;
  const gateway = await startGateway({
    peers: createPeers({ rest: upstream.url, workflow: upstream.url }),
    operator: { ...TEST_OPERATOR, hostId: 'root' },
    ...options,
    config: { ...config, gateway: { admins: ['operator', 'boss'], staticTokens: CO_TOKENS, ...section } },
  });
  return { gateway, upstream };
}

const give = (gateway: TestGateway, subject: string, role: Role, namespaceId = 'default') =>
  gateway.call(grantRole, { body: { subject, role, namespaceId } as never });

const HOST = { name: 'x', publicKey: Buffer.alloc(32, 1).toString('base64') };

/** Sends a request to an endpoint, with an empty body, and returns the status and the error. */
async function send(gateway: { url: string }, name: string, token: string) {
  const [method, path] = name.split(' ');
  const url = gateway.url + path!.replace(/:\w+/g, 'x');
  const content = path === registerHost.path ? HOST : {};
  const body = method === 'GET' || method === 'DELETE' ? {} : { body: JSON.stringify(content) };
  const headers = {
    authorization: `Bearer ${token}`,
    ...(body.body ? { 'content-type': 'application/json' } : {}),
  };
  const signal = AbortSignal.timeout(10_000);
  const response = await fetch(url, { method: method!, headers, signal, ...body });
  if (path!.endsWith('/stream') && response.ok) {
    await response.body!.cancel();
    return { status: 200, error: undefined };
  }
  const reply = (await response.json().catch(() => ({}))) as { error?: { code: string; details: object } };
  return { status: response.status, error: reply.error };
}

const RANK = ['viewer', 'editor', 'admin'];
const RULED = Object.entries(ENDPOINT_ACCESS).filter(([, { needs }]) => RANK.includes(needs));

test.each(['viewer', 'editor', 'admin'] as const)(
  'the role %s may call exactly the endpoints that need it or less',
  async (role) => {
    const { gateway } = await start();
    await give(gateway, 'host:boss', role, '*');
    for (const [name, { needs }] of RULED) {
      // The caller would take its own role away.
      if (name.startsWith('DELETE /api/v1/access')) continue;
      const { status, error } = await send(gateway, name, CO_ADMIN);
      const allowed = RANK.indexOf(role) >= RANK.indexOf(needs);
      if (allowed) expect([name, status]).not.toEqual([name, 403]);
      else
        expect([name, status, error]).toMatchObject([
          name,
          403,
          { code: 'FORBIDDEN', details: { neededRole: needs, role } },
        ]);
    }
  },
);

test('a caller without a role keeps its rights, and a role only takes rights away', async () => {
  const { gateway } = await start();
  expect((await send(gateway, 'POST /api/v1/workflows/runs', MEMBER_TOKEN)).status).toBe(200);
  const ask = { body: { pluginId: '@acme/orders', event: 'created' } } as never;
  await gateway.call(provisionWebhook, ask, MEMBER_TOKEN);
  await give(gateway, 'host:member', 'admin', '*');
  // Its role allows the call, but only administrators may create clients.
  await expect(
    gateway.call(createClientCredentials, { body: { name: 'x' } }, MEMBER_TOKEN),
  ).rejects.toMatchObject({
    code: 'FORBIDDEN',
    message: expect.stringContaining('gateway.admins'),
  });
  await give(gateway, 'host:member', 'viewer');
  await gateway.call(revokeRole, { query: { subject: 'host:member', namespaceId: '*' } as never });
  await expect(gateway.call(provisionWebhook, ask, MEMBER_TOKEN)).rejects.toMatchObject({
    code: 'FORBIDDEN',
    message:
      'This call needs the role admin in the namespace "default"; the caller has the role viewer there.',
    details: { neededRole: 'admin', role: 'viewer', namespaceId: 'default' },
  });
  expect((await gateway.call(listWebhooks, {}, MEMBER_TOKEN)).items.length).toBeGreaterThan(0);
  expect(await gateway.call(whoAmI, {}, MEMBER_TOKEN)).toMatchObject({ role: 'viewer' });
  expect(await gateway.call(whoAmI)).not.toHaveProperty('role');
  await gateway.call(revokeRole, { query: { subject: 'host:member' } as never });
  await gateway.call(provisionWebhook, ask, MEMBER_TOKEN);
  const refusals = gateway.logs.lines.filter(({ event }) => event === 'auth.forbidden');
  expect(refusals).toMatchObject([{ reasonCode: 'ROLE_MISSING', evidence: { hostId: 'member' } }]);
});

test('a role for one namespace gives nothing in others, whatever way they are named', async () => {
  const { gateway } = await start();
  await give(gateway, 'host:boss', 'admin', 'acme');
  const acme = { 'x-svc-namespace': 'acme' };
  await expect(gateway.call(listWebhooks, {}, CO_ADMIN)).rejects.toMatchObject({ details: { role: null } });
  // It is no administrator of all namespaces any more.
  await expect(gateway.call(listWebhooks, {}, CO_ADMIN, acme)).rejects.toMatchObject({ code: 'FORBIDDEN' });
  await give(gateway, 'host:boss', 'admin');
  await gateway.call(createClientCredentials, { body: { name: 'a', namespaceId: 'acme' as never } });
  expect((await gateway.call(listClients, {}, CO_ADMIN).catch((error) => error)).code).toBe('FORBIDDEN');
  expect((await gateway.call(listTokens, {}, CO_ADMIN)).items).toEqual([]);
  for (const list of [listTokens, listHosts])
    await expect(
      gateway.call(list, { query: { namespaceId: 'other' as never } }, CO_ADMIN),
    ).rejects.toMatchObject({
      code: 'FORBIDDEN',
    });
  const globally: Array<[Endpoint, unknown]> = [
    [createClientCredentials, { name: 'x' }],
    [mintToken, { hostId: 'ci' }],
    [installPlugin, { source: 'x' }],
    [grantRole, { subject: 'host:x', role: 'viewer' }],
    [registerHost, HOST],
  ];
  for (const [endpoint, body] of globally)
    await expect(gateway.call(endpoint, { body } as never, CO_ADMIN)).rejects.toMatchObject({
      code: 'FORBIDDEN',
    });
});

test('a client has its role whichever token it uses', async () => {
  const { gateway } = await start();
  const { clientId, clientSecret } = await gateway.call(createClientCredentials, { body: { name: 'ci' } });
  const { accessToken } = await gateway.call(exchangeToken, { body: { clientId, clientSecret } });
  await give(gateway, `client:${clientId}`, 'viewer');
  const second = await gateway.call(exchangeToken, { body: { clientId, clientSecret } });
  for (const token of [accessToken, second.accessToken]) {
    expect(await send(gateway, 'POST /api/v1/workflows/runs', token)).toMatchObject({ status: 403 });
    expect((await send(gateway, 'GET /api/v1/workflows/runs', token)).status).toBe(200);
  }
  await expect(give(gateway, 'client:nobody', 'viewer')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  expect((await gateway.call(listRoles)).items).toMatchObject([
    { subject: `client:${clientId}`, namespaceId: 'default', role: 'viewer', grantedBy: 'operator' },
  ]);
});

test('a claim of the identity provider gives its highest role', async () => {
  const clock = manualClock();
  const issuer = await startIssuer(() => clock.now());
  const { gateway } = await start({ config: { gateway: { oauth: issuer.config } }, clock });
  const staff = await issuer.sign({ groups: ['staff', 'guests'] });
  const guest = await issuer.sign({ groups: 'guests' });
  const free = await issuer.sign({});
  const run = (token: string) => send(gateway, 'POST /api/v1/workflows/runs', token);
  expect((await run(guest)).status).toBe(200);
  await give(gateway, 'claim:groups=guests', 'viewer', 'acme');
  await give(gateway, 'claim:groups=staff', 'editor', 'acme');
  expect((await run(guest)).status).toBe(403);
  expect((await run(staff)).status).toBe(200);
  expect((await run(free)).status).toBe(200);
});

test('paths in another spelling, HEAD and unknown routes have no weaker rule', async () => {
  const { gateway, upstream } = await start();
  await give(gateway, 'host:boss', 'viewer', '*');
  const status = async (method: string, path: string) =>
    (await fetch(gateway.url + path, { method, headers: { authorization: `Bearer ${CO_ADMIN}` } })).status;
  expect(await status('HEAD', '/api/v1/workflows/runs')).toBe(200);
  const before = upstream.seen.length;
  for (const path of [
    '/api/v1/workflows/runs',
    '/api/v1/%77orkflows/runs',
    '/api/v1/workflows/runs/',
    '/api/v1/unknown',
    '/api/v1/plugins/shop/orders',
    '/v1/plugins/shop/orders',
    '/workflows/runs/x/cancel',
    '/api/v1/workflows/runs/x/pause',
    '/api/v1/workflows/runs/x/resume',
    '/api/v1/workflows/ship/pause',
    '/api/v1/workflows/ship/resume',
  ])
    expect([path, await status('POST', path)]).toEqual([path, path.startsWith('/v1') ? 404 : 403]);
  expect(upstream.seen).toHaveLength(before);
  expect(await status('GET', '/api/v1/plugins/shop/orders')).toBe(200);
});

test('the operator cannot be locked out', async () => {
  const { gateway } = await start({ operator: { ...TEST_OPERATOR, hostId: 'root' } });
  for (const subject of ['host:root', `client:${TEST_OPERATOR.clientId}`])
    await expect(give(gateway, subject, 'viewer')).rejects.toMatchObject({ code: 'CONFLICT' });
  await expect(
    gateway.call(setClientScopes, {
      params: { clientId: TEST_OPERATOR.clientId },
      body: { scopes: ['messages:send'] },
    }),
  ).rejects.toMatchObject({ code: 'CONFLICT' });
});

test('a stream of deliveries ends when the role is taken away', async () => {
  const { gateway } = await start();
  await give(gateway, 'host:member', 'viewer');
  const response = await fetch(gateway.url + streamDeliveries.path, {
    headers: { authorization: `Bearer ${MEMBER_TOKEN}` },
  });
  expect(response.status).toBe(200);
  await give(gateway, 'host:member', 'viewer', 'elsewhere');
  await gateway.call(revokeRole, { query: { subject: 'host:member' } as never });
  const text = await response.text();
  expect(text).toContain('event: error');
  expect(text).toContain('FORBIDDEN');
});

test('WebSockets need an editor, and close when the role is taken away', async () => {
  const { gateway } = await start();
  await give(gateway, 'host:member', 'viewer');
  const connect = () => {
    const headers = { authorization: `Bearer ${MEMBER_TOKEN}` };
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/hosts/connect`, { headers });
    onTestFinished(() => socket.terminate());
    const closed = new Promise<number>((resolve) => socket.on('close', resolve));
    const status = new Promise<number>((resolve) => {
      socket.on('open', () => resolve(101));
      socket.on('error', (error) => resolve(Number(/\d{3}/.exec(error.message)?.[0])));
    });
    return { status, closed };
  };
  expect(await connect().status).toBe(403);
  await give(gateway, 'host:member', 'editor');
  const socket = connect();
  expect(await socket.status).toBe(101);
  await give(gateway, 'host:member', 'viewer');
  expect(await socket.closed).toBe(4403);
});

test('a client with scopes may do only what they name', async () => {
  const { gateway } = await start();
  const created = await gateway.call(createClientCredentials, {
    body: { name: 'reader', scopes: ['queue:orders', 'deliveries:read'] },
  });
  const { clientId, clientSecret } = created;
  expect(created.scopes).toEqual(['deliveries:read', 'queue:orders']);
  const { accessToken } = await gateway.call(exchangeToken, { body: { clientId, clientSecret } });
  for (const [name, { scope, needs }] of RULED) {
    const { status, error } = await send(gateway, name, accessToken);
    if (scope === 'deliveries:read') expect([name, status]).not.toEqual([name, 403]);
    else expect([name, needs, status, error]).toMatchObject([name, needs, 403, { code: 'FORBIDDEN' }]);
  }
  expect(await gateway.call(whoAmI, {}, accessToken)).toMatchObject({ scopes: created.scopes });
  const { items } = await gateway.call(listClients);
  expect(items.find((item) => item.clientId === clientId)?.scopes).toEqual(created.scopes);

  const set = (scopes: string[] | null) =>
    gateway.call(setClientScopes, { params: { clientId }, body: { scopes } });
  await set(['messages:send']);
  await expect(gateway.call(listDeliveries, {}, accessToken)).rejects.toMatchObject({
    code: 'FORBIDDEN',
    details: { neededScope: 'deliveries:read', scopes: ['messages:send'] },
  });
  await set(null);
  await gateway.call(listDeliveries, {}, accessToken);
  expect((await send(gateway, 'POST /api/v1/workflows/runs', accessToken)).status).toBe(200);
  await expect(set(['everything'])).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
});

const STORES: Array<[string, () => Promise<Record<string, unknown>>]> = [
  ['SQLite', async () => ({})],
  ...(POSTGRES_PROGRAMS
    ? [['PostgreSQL', async () => ({ store: { url: await migratedPostgres() } })] as (typeof STORES)[0]]
    : []),
];

test.each(STORES)('a role is in force on every node once the call has returned: %s', async (name, store) => {
  const dataDir = await tempDir();
  await placeEmptyDatabase('gateway', dataDir);
  const config = await store();
  const shared = name === 'SQLite' ? { dataDir } : {};
  const nodes = await Promise.all(
    ['a', 'b'].map(async (instance) => {
      const { gateway } = await start({
        config,
        ...shared,
        sharesStore: true,
        env: { SVC_INSTANCE: instance },
      });
      return gateway;
    }),
  );
  const [a, b] = nodes as [TestGateway, TestGateway];
  const body = { pluginId: '@acme/orders', event: 'created' } as never;
  // The clocks of the nodes stand still, but a node reads the changes of others when its clock moves.
  const timer = setInterval(() => {
    for (const { clock } of nodes) clock.advance(10);
  }, 5);
  onTestFinished(() => clearInterval(timer));
  const outcome = (node: TestGateway) =>
    node.call(pauseWebhook, { body }, MEMBER_TOKEN).then(
      () => 'allowed',
      (error) => error.code,
    );
  for (const [granting, other] of [
    [a, b],
    [b, a],
  ] as const) {
    expect([await outcome(a), await outcome(b)]).toEqual(['allowed', 'allowed']);
    await give(granting, 'host:member', 'viewer');
    expect(await outcome(other)).toBe('FORBIDDEN');
    await give(granting, 'host:member', 'editor');
    expect(await outcome(other)).toBe('allowed');
    await give(granting, 'host:member', 'viewer');
    await granting.call(revokeRole, { query: { subject: 'host:member' } as never });
    expect(await outcome(other)).toBe('allowed');
  }
  await expect(a.call(startRun, { body: {} as never }, 'wrong')).rejects.toMatchObject({
    code: 'UNAUTHORIZED',
  });
});
