import { createHmac } from 'node:crypto';
import { get } from 'node:http';
import { SignJWT } from 'jose';
import { expect, test } from 'vitest';
import {
  createPortalLink,
  ENDPOINT_ACCESS,
  listAudit,
  listPortalLinks,
  revokePortalLinks,
} from '../../../src/contracts/index.ts';
import { hours } from '../../../src/kit/time/duration.ts';
import { TEST_KEYS } from '../../support/daemon.ts';
import { OTHER_TOKEN, startGateway, type TestGateway } from '../../support/gateway.ts';

const IDS: Record<string, string> = {
  id: 'ep_00000000000000000000000000',
  pluginId: '@acme%2Forders',
};

async function linkOf(gateway: TestGateway, application = 'customer-7', expiresInSeconds = 3600) {
  const link = await gateway.call(createPortalLink, { body: { application, expiresInSeconds } });
  const url = new URL(link.url);
  expect([url.pathname, url.search]).toEqual(['/studio/portal', '']);
  return { ...link, token: new URLSearchParams(url.hash.slice(1)).get('token')! };
}

function send(gateway: TestGateway, token: string, method = 'GET', path = '/api/v1/portal', headers = {}) {
  return gateway.fetch(path, {
    method,
    headers: { authorization: `Bearer ${token}`, ...headers, 'content-type': 'application/json' },
    ...(method === 'GET' ? {} : { body: JSON.stringify(BODIES[path] ?? {}) }),
  });
}

/** Bodies of calls that are validated before the caller is authenticated. */
const BODIES: Record<string, unknown> = {
  '/hosts/register': { name: 'x', publicKey: Buffer.alloc(32, 1).toString('base64') },
};

/** Asks for a WebSocket and returns the status of the answer. */
function upgradeStatus({ url }: TestGateway, token: string): Promise<number | undefined> {
  const headers = {
    ...{ authorization: `Bearer ${token}`, connection: 'Upgrade', upgrade: 'websocket' },
    ...{ 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' },
  };
  return new Promise((resolve, reject) => {
    const request = get(`${url}/hosts/connect`, { headers }, (response) => resolve(response.statusCode));
    request.on('upgrade', (response) => resolve(response.statusCode)).on('error', reject);
  });
}

test('the token of a link is refused by every endpoint that is not part of the portal', async () => {
  const gateway = await startGateway();
  const { token } = await linkOf(gateway);
  const answers = await Promise.all(
    Object.entries(ENDPOINT_ACCESS)
      // Calls of services authenticate by another header, after their validation.
      .filter(([, { needs, isPortal }]) => needs !== 'open' && needs !== 'service' && !isPortal)
      .map(async ([name]) => {
        const [method, pattern] = name.split(' ');
        const path = pattern!.replaceAll(/:(\w+)/g, (_, key: string) => IDS[key] ?? 'x');
        return [name, (await send(gateway, token, method, path)).status] as const;
      }),
  );
  expect(answers.length).toBeGreaterThan(100);
  expect(answers.filter(([, status]) => ![401, 403, 404].includes(status))).toEqual([]);
});

test('a link describes itself, and no other token has a portal', async () => {
  const gateway = await startGateway();
  const { token, expiresAt } = await linkOf(gateway);
  const answer = await send(gateway, token);
  expect(await answer.json()).toEqual({ application: 'customer-7', expiresAt });
  expect((await send(gateway, 'test-admin-token')).status).toBe(404);
  expect((await send(gateway, token, 'GET', '/api/v1/portal', { 'x-svc-namespace': 'other' })).status).toBe(
    403,
  );
});

test('a link opens no session of the studio and no socket', async () => {
  const gateway = await startGateway();
  const { token } = await linkOf(gateway);
  const session = await gateway.fetch('/studio/session', {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: gateway.url },
    body: JSON.stringify({ token }),
  });
  expect(session.status).toBe(401);
  expect(session.headers.get('set-cookie')).toBeNull();
  expect((await send(gateway, token, 'GET', '/api/v1/whoami')).status).toBe(401);
  expect(await upgradeStatus(gateway, token)).toBe(401);
});

test('a link ends at its expiry, to the second', async () => {
  const gateway = await startGateway();
  const { token, expiresAt } = await linkOf(gateway, 'customer-7', 120);
  expect((await send(gateway, token)).status).toBe(200);
  gateway.clock.advance(expiresAt - gateway.clock.now() - 1);
  expect((await send(gateway, token)).status).toBe(200);
  gateway.clock.advance(1000);
  const refused = await send(gateway, token);
  expect(refused.status).toBe(401);
  expect(await refused.json()).toMatchObject({ error: { message: expect.stringContaining('expired') } });
});

test('links are revoked one by one or by application, within their namespace', async () => {
  const gateway = await startGateway();
  const [first, second, other] = [
    await linkOf(gateway),
    await linkOf(gateway),
    await linkOf(gateway, 'customer-8'),
  ];
  const revoke = (query: object, token?: string) => gateway.call(revokePortalLinks, { query }, token);
  await expect(revoke({ id: first.id }, OTHER_TOKEN)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  expect(await revoke({ application: 'customer-7' }, OTHER_TOKEN)).toEqual({ revoked: 0 });
  expect((await send(gateway, first.token)).status).toBe(200);

  expect(await revoke({ id: first.id })).toEqual({ revoked: 1 });
  expect((await send(gateway, first.token)).status).toBe(401);
  expect((await send(gateway, second.token)).status).toBe(200);
  const { items } = await gateway.call(listPortalLinks, {});
  expect(items.map(({ id }) => id).toSorted()).toEqual([other.id, second.id].toSorted());

  expect(await revoke({ application: 'customer-7' })).toEqual({ revoked: 1 });
  expect((await send(gateway, second.token)).status).toBe(401);
  expect((await send(gateway, other.token)).status).toBe(200);
  await expect(revoke({ id: first.id })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await expect(revoke({})).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
});

test('forged tokens of links are refused: other keys, algorithms, claims and prefixes', async () => {
  const gateway = await startGateway();
  const { token, id } = await linkOf(gateway);
  const now = Math.floor(gateway.clock.now() / 1000);
  const key = createHmac('sha256', TEST_KEYS.internalSecret).update('portal links').digest();
  const forge = (
    claims: Record<string, unknown>,
    { alg = 'HS256', by = key as Uint8Array, audience = 'portal' } = {},
  ) =>
    new SignJWT({ namespaceId: 'default', application: 'customer-7', ...claims })
      .setProtectedHeader({ alg })
      .setAudience(audience)
      .setIssuedAt(now)
      .setExpirationTime(now + 60)
      .setJti(id)
      .sign(by);
  expect((await send(gateway, `svcp_${await forge({})}`)).status).toBe(200);
  const [head, payload, signature] = token.slice('svcp_'.length).split('.');
  const none = Buffer.from('{"alg":"none"}').toString('base64url');
  const longer = Buffer.alloc(64, 1);
  const forged = [
    await forge({}, { by: Buffer.from(TEST_KEYS.jwtSecret!) }),
    await forge({}, { by: Buffer.from(TEST_KEYS.internalSecret) }),
    await forge({}, { alg: 'HS512', by: Buffer.concat([key, longer]) }),
    await forge({}, { audience: 'other' }),
    await forge({ application: '' }),
    await forge({ hostId: 'operator' }),
    `${none}.${payload}.`,
    `${none}.${payload}.${signature}`,
    `${head}.${payload}.`,
    `${head}.${payload}.${signature}A`,
    `${head}.${payload}`,
    '',
    'x'.repeat(4000),
  ];
  for (const text of forged)
    expect([text, (await send(gateway, `svcp_${text}`)).status]).toEqual([text, 401]);
  // Without the prefix, the token is that of an ordinary caller, which has another key.
  expect((await send(gateway, token.slice('svcp_'.length))).status).toBe(401);
  expect((await send(gateway, token, 'GET', '/api/v1/portal', { cookie: 'svc=1' })).status).toBe(200);
});

test('the token of a link is in no log line and no audit entry', async () => {
  const gateway = await startGateway();
  const { token, id } = await linkOf(gateway);
  await send(gateway, token);
  await send(gateway, `${token}x`);
  await gateway.call(revokePortalLinks, { query: { id } });
  await send(gateway, token);
  const { items } = await gateway.call(listAudit, {});
  expect(items.map(({ actor, action, object }) => [actor, action, object])).toEqual([
    ['operator', 'portal.revoke', `application:${id}`],
    ['operator', 'portal.create', 'application:customer-7'],
  ]);
  expect(JSON.stringify([gateway.logs.lines, items])).not.toContain(token.split('.')[2]!);
});

test('links live at least a minute and at most seven days, for valid applications', async () => {
  const gateway = await startGateway();
  const create = (body: object) =>
    gateway.call(createPortalLink, { body: body as { application: string } }).then(
      ({ expiresAt }) => expiresAt - gateway.clock.now(),
      ({ code }) => code,
    );
  expect(await create({ application: 'a' })).toBeLessThanOrEqual(hours(1));
  expect(await create({ application: 'a', expiresInSeconds: 7 * 24 * 3600 })).toBeGreaterThan(hours(167));
  for (const body of [
    { application: 'a', expiresInSeconds: 7 * 24 * 3600 + 1 },
    { application: 'a', expiresInSeconds: 59 },
    { application: 'two words' },
    { application: 'a\nb' },
    {},
  ])
    expect(await create(body)).toBe('VALIDATION_ERROR');
});

test('the calls of all links of an application are limited together', async () => {
  const gateway = await startGateway();
  const [first, second, other] = [
    await linkOf(gateway),
    await linkOf(gateway),
    await linkOf(gateway, 'customer-8'),
  ];
  for (let n = 0; n < 300; n++) await send(gateway, n % 2 ? first.token : second.token);
  const limited = await send(gateway, first.token);
  expect([limited.status, Number(limited.headers.get('retry-after')) > 0]).toEqual([429, true]);
  expect((await send(gateway, other.token)).status).toBe(200);
});
