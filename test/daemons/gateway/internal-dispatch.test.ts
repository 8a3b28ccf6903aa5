import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Permissions } from '../../../src/contracts/index.ts';
import type { GatewayServices } from '../../../src/daemons/gateway/services.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { state } from '../../../src/daemons/state/index.ts';
import { startTestDaemon, TEST_KEYS } from '../../support/daemon.ts';
import { ADMIN_TOKEN, startGateway } from '../../support/gateway.ts';
import { signJwt } from './support/start-gateway.ts';

const PROJECT = fileURLToPath(new URL('../../fixtures/projects/hosts', import.meta.url));
const SECRET = { 'x-internal-secret': TEST_KEYS.internalSecret };
const ECHO = { plugin: { id: '@acme/tools' }, handler: 'handlers.js#echo' };

type Gateway = Awaited<ReturnType<typeof startGateway>>;

const start = () => startGateway({ projectDir: PROJECT });

async function post(gateway: Gateway, body: unknown, headers: Record<string, string> = SECRET) {
  const response = await fetch(`${gateway.url}/internal/dispatch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return {
    status: response.status,
    body: (await response.json()) as {
      executionId: string;
      result: { exitCode: number; result: never };
      error: { code: string };
    },
  };
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

test('the internal secret authorizes an execution, which runs where the config says', async () => {
  const gateway = await start();
  expect(await post(gateway, { ...ECHO, executionId: 'e-1', input: { a: 1 } })).toEqual({
    status: 200,
    body: { executionId: 'e-1', result: { exitCode: 0, result: { a: 1 } } },
  });
});

test('naming a host for a plugin that runs on no host is refused instead of running on another backend', async () => {
  const gateway = await start();
  const { status, body } = await post(gateway, { ...ECHO, target: { hostId: 'host_absent' } });
  expect([status, body.error.code]).toEqual([503, 'HOST_UNAVAILABLE']);
  expect((await post(gateway, { ...ECHO, target: {} })).status).toBe(200);
});

test.each([
  ['nothing', {}],
  ['a Bearer token alone', bearer(ADMIN_TOKEN)],
  ['a wrong secret', { 'x-internal-secret': 'wrong' }],
  ['an empty secret', { 'x-internal-secret': '' }],
  ['a secret with a blank more', { 'x-internal-secret': `${TEST_KEYS.internalSecret}x` }],
  ['a wrong secret beside a good token', { 'x-internal-secret': 'wrong', ...bearer(ADMIN_TOKEN) }],
  ['the secret as a Bearer token', bearer(TEST_KEYS.internalSecret)],
  ['the secret under another spelling', { x_internal_secret: TEST_KEYS.internalSecret }],
])('%s: 403 with a diagnostic, before the body is read', async (_name, headers) => {
  const gateway = await start();
  const { status, body } = await post(gateway, { not: 'valid' }, headers as Record<string, string>);
  expect([status, body.error.code]).toEqual([403, 'FORBIDDEN']);
  expect(gateway.logs.lines).toContainEqual(
    expect.objectContaining({ event: 'auth.failed', outcome: 'refused' }),
  );
});

test.each([
  ['no plugin', { handler: 'handlers.js#echo' }, 400, 'VALIDATION_ERROR'],
  ['no handler', { plugin: { id: '@acme/tools' } }, 400, 'VALIDATION_ERROR'],
  ['a timeout of nothing', { ...ECHO, timeoutMs: 0 }, 400, 'VALIDATION_ERROR'],
  ['an unknown plugin', { ...ECHO, plugin: { id: '@acme/none' } }, 404, 'PLUGIN_NOT_FOUND'],
  [
    'a handler the manifest does not declare',
    { ...ECHO, handler: 'handlers.js#default' },
    400,
    'INVALID_HANDLER',
  ],
  ['a plain function declared as a command, under rest', { ...ECHO, host: 'rest' }, 400, 'HOST_MISMATCH'],
  ['the same under a webhook', { ...ECHO, host: 'webhook' }, 400, 'HOST_MISMATCH'],
  ['the same as a validator', { ...ECHO, host: 'validator' }, 400, 'HOST_MISMATCH'],
  [
    'a plain function declared as a route, under cli',
    { ...ECHO, handler: 'streams.js#mirror' },
    400,
    'HOST_MISMATCH',
  ],
])('%s is refused', async (_name, body, status, code) => {
  const gateway = await start();
  const reply = await post(gateway, body);
  expect([reply.status, reply.body.error.code]).toEqual([status, code]);
});

test('folder, version and config in the request are ignored: the registry has them', async () => {
  const gateway = await start();
  const { body } = await post(gateway, {
    plugin: { id: '@acme/tools', root: '/', version: '9.9.9' },
    handler: 'handlers.js#about',
    config: { stolen: true },
  });
  expect(body.result.result).toMatchObject({ version: '1.2.0', config: {} });
});

test('permissions select among the declared sets of a handler and add none', async () => {
  const gateway = await start();
  const shared = { ...ECHO, handler: 'handlers.js#environment' };
  const outcome = async (body: object) => {
    const reply = await post(gateway, body);
    return reply.status === 200 ? 200 : reply.body.error.code;
  };
  const declared = Permissions.parse({ platform: { dispatch: true }, network: ['*'] });
  expect(await outcome({ ...shared, permissions: Permissions.parse({}) })).toBe(200);
  expect(await outcome({ ...shared, permissions: declared })).toBe(200);
  // Two commands share this handler, with different permissions.
  expect(await outcome(shared)).toBe('PERMISSION_DENIED');
  expect(await outcome({ ...ECHO, permissions: { network: ['*'] } })).toBe('PERMISSION_DENIED');
});

test('an execution id runs only once at a time', async () => {
  const stateDaemon = await startTestDaemon(state);
  const gateway = await startGateway({ projectDir: PROJECT, peers: createPeers({ state: stateDaemon.url }) });
  const call = { ...ECHO, handler: 'handlers.js#slow', input: { ms: 500 }, executionId: 'twice' };
  const replies = await Promise.all([post(gateway, call), post(gateway, call)]);
  expect(replies.map(({ status }) => status).sort()).toEqual([200, 409]);
});

test('a container acts only for its own namespace, by the secret and token of its execution', async () => {
  const gateway = await start();
  const { credentials } = gateway.services as GatewayServices;
  const execution = { executionId: 'e-7', tenantId: 'acme', timeoutMs: 60_000 };
  const pass = await credentials.issue(execution as never);
  const other = await credentials.issue({ ...execution, executionId: 'e-8', tenantId: 'other' } as never);
  const own = { 'x-internal-secret': pass.internalSecret, ...bearer(pass.token) };
  const about = { ...ECHO, handler: 'handlers.js#about' };

  const { status, body } = await post(gateway, about, own);
  expect([status, body.result.result]).toEqual([200, expect.objectContaining({ tenantId: 'acme' })]);
  expect((await post(gateway, { ...about, tenantId: 'acme' }, own)).status).toBe(200);
  expect((await post(gateway, { ...about, tenantId: 'other' }, own)).status).toBe(403);
  // Its secret is worth nothing without its token, nor with that of another one.
  expect((await post(gateway, about, { 'x-internal-secret': pass.internalSecret })).status).toBe(403);
  expect((await post(gateway, about, { ...own, ...bearer(other.token) })).status).toBe(403);
  // The platform's own secret does not free a container from its namespace.
  expect(
    (await post(gateway, { ...about, tenantId: 'other' }, { ...SECRET, ...bearer(pass.token) })).status,
  ).toBe(403);

  await pass.end();
  expect((await post(gateway, about, own)).status).toBe(403);
  expect((await post(gateway, about, { ...SECRET, ...bearer(pass.token) })).status).toBe(403);
});

test('container tokens of a killed gateway are refused by the next one', async () => {
  const killed = await start();
  const { credentials } = killed.services as GatewayServices;
  const execution = { executionId: 'e-7', tenantId: 'acme', timeoutMs: 600_000 };
  const pass = await credentials.issue(execution as never);
  const ended = await credentials.issue({ ...execution, executionId: 'e-8' } as never);
  await ended.end();
  const own = { 'x-internal-secret': pass.internalSecret, ...bearer(pass.token) };
  expect((await post(killed, ECHO, own)).status).toBe(200);
  // Nobody ended it: that is what a kill leaves behind.
  await killed.close();

  const { dataDir, clock } = killed;
  const gateway = await startGateway({ projectDir: PROJECT, dataDir, clock });
  expect((await post(gateway, ECHO, own)).status).toBe(403);
  expect((await gateway.fetch('/api/v1/whoami', { headers: bearer(pass.token) })).status).toBe(401);
  // Each is ended once, and a new one is in force.
  expect(await (gateway.services as GatewayServices).credentials.revokeOrphans()).toBe(0);
  const next = await (gateway.services as GatewayServices).credentials.issue(execution as never);
  const fresh = { 'x-internal-secret': next.internalSecret, ...bearer(next.token) };
  expect((await post(gateway, ECHO, fresh)).status).toBe(200);
});

test('a forged container token does not dispatch', async () => {
  const gateway = await start();
  const { credentials } = gateway.services as GatewayServices;
  const { internalSecret } = await credentials.issue({
    executionId: 'e-7',
    tenantId: 'acme',
    timeoutMs: 1000,
  } as never);
  const claims = { hostId: 'container:e-7', namespaceId: 'acme', typ: 'container', executionId: 'e-7' };
  const forged = await signJwt(claims, { secret: 'another-secret-of-more-than-thirty-two-bytes' });
  expect((await post(gateway, ECHO, { 'x-internal-secret': internalSecret, ...bearer(forged) })).status).toBe(
    403,
  );
});
