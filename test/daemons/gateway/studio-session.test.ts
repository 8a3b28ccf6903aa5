import { expect, test } from 'vitest';
import {
  createClientCredentials,
  grantRole,
  listTokens,
  mintToken,
  type Role,
  revokeClient,
  revokeToken,
} from '../../../src/contracts/index.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import { minutes, seconds } from '../../../src/kit/time/duration.ts';
import type { AnyJson } from '../../support/any-json.ts';
import { ADMIN_TOKEN, MEMBER_TOKEN, startGateway, type TestGateway } from '../../support/gateway.ts';
import { startIssuer } from '../../support/oauth-issuer.ts';

interface Browser {
  cookie: string;
  csrf: string;
}

async function start(gateway: TestGateway, proof: object): Promise<Response> {
  return fetch(`${gateway.url}/studio/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(proof),
  });
}

async function signIn(gateway: TestGateway, proof: object = { token: ADMIN_TOKEN }): Promise<Browser> {
  const response = await start(gateway, proof);
  expect(response.status).toBe(201);
  const [setCookie] = response.headers.getSetCookie();
  return { cookie: setCookie!.split(';')[0]!, csrf: ((await response.json()) as AnyJson).csrfToken };
}

async function statusOf(
  gateway: TestGateway,
  { cookie, csrf }: Partial<Browser>,
  path = '/api/v1/whoami',
  init: RequestInit = {},
): Promise<number> {
  const headers = { ...(cookie ? { cookie } : {}), ...(csrf ? { 'x-svc-csrf': csrf } : {}) };
  return (await fetch(gateway.url + path, { ...init, headers })).status;
}

test('a session cookie is HttpOnly and SameSite=Strict, and its session has the identity of the token', async () => {
  const gateway = await startGateway();
  const response = await start(gateway, { token: MEMBER_TOKEN });
  const [setCookie] = response.headers.getSetCookie();
  expect(setCookie).toMatch(/^svc-session-\d+=[\w.-]+; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict$/);
  expect(await response.json()).toMatchObject({ hostId: 'member', namespaceId: 'default', admin: false });
  expect(response.headers.get('cache-control')).toBe('no-store');
});

test('the cookie is Secure behind a public https URL', async () => {
  const gateway = await startGateway({ config: { gateway: { publicUrl: 'https://svc.example.com' } } });
  const [setCookie] = (await start(gateway, { token: ADMIN_TOKEN })).headers.getSetCookie();
  expect(setCookie).toMatch(/^__Host-svc-session-443=.*; Secure$/);
});

test('a call with the cookie needs the CSRF token of its session', async () => {
  const gateway = await startGateway();
  const mine = await signIn(gateway);
  const other = await signIn(gateway);
  expect(await statusOf(gateway, mine)).toBe(200);
  expect(await statusOf(gateway, { cookie: mine.cookie })).toBe(401);
  expect(await statusOf(gateway, { cookie: mine.cookie, csrf: other.csrf })).toBe(401);
  expect(await statusOf(gateway, { csrf: mine.csrf })).toBe(401);
  const send = { method: 'POST' };
  expect(await statusOf(gateway, { cookie: mine.cookie }, '/api/v1/studio/links', send)).toBe(401);
  expect(await statusOf(gateway, mine, '/api/v1/studio/links', send)).toBe(201);
});

test('two cookies of the name are refused, because one could be set by an attacker', async () => {
  const gateway = await startGateway();
  const mine = await signIn(gateway);
  const other = await signIn(gateway, { token: MEMBER_TOKEN });
  const cookie = `${mine.cookie}; ${other.cookie}`;
  expect(await statusOf(gateway, { cookie, csrf: mine.csrf })).toBe(401);
});

test('GET /studio/session restores the session of the cookie', async () => {
  const gateway = await startGateway();
  const { cookie, csrf } = await signIn(gateway);
  const response = await fetch(`${gateway.url}/studio/session`, { headers: { cookie } });
  expect(await response.json()).toMatchObject({ hostId: 'operator', admin: true, csrfToken: csrf });
  expect(await statusOf(gateway, {}, '/studio/session')).toBe(401);
});

test('a one-time link signs in once, within 60 seconds', async () => {
  const gateway = await startGateway();
  const mine = await signIn(gateway);
  const link = async (): Promise<string> => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const response = await fetch(`${gateway.url}/api/v1/studio/links`, { method: 'POST', headers });
    const { path } = (await response.json()) as AnyJson;
    expect(path).toMatch(/^\/studio\/sign-in#link=svcl_[\w-]{43}$/);
    return path.split('=')[1];
  };
  const used = await link();
  const opened = await signIn(gateway, { link: used });
  expect(await statusOf(gateway, opened)).toBe(200);
  expect((await start(gateway, { link: used })).status).toBe(401);
  const late = await link();
  gateway.clock.advance(seconds(60) + 1);
  expect((await start(gateway, { link: late })).status).toBe(401);
  expect(await statusOf(gateway, mine)).toBe(200);
});

test('only administrators create links', async () => {
  const gateway = await startGateway();
  const member = await signIn(gateway, { token: MEMBER_TOKEN });
  expect(await statusOf(gateway, member, '/api/v1/studio/links', { method: 'POST' })).toBe(403);
});

test('client credentials sign in, and a revoked client ends its sessions at once', async () => {
  const gateway = await startGateway();
  const body = { name: 'console' };
  const { clientId, clientSecret } = await gateway.call(createClientCredentials, { body });
  expect((await start(gateway, { clientId, clientSecret: 'wrong' })).status).toBe(401);
  const session = await signIn(gateway, { clientId, clientSecret });
  expect(await statusOf(gateway, session)).toBe(200);
  await gateway.call(revokeClient, { params: { clientId } });
  expect(await statusOf(gateway, session)).toBe(401);
});

test('sessions are listed with the tokens, and a revoked one ends at once', async () => {
  const gateway = await startGateway();
  const session = await signIn(gateway, { token: MEMBER_TOKEN });
  const { items } = await gateway.call(listTokens, { query: { limit: 10 } });
  const [listed] = items.filter(({ jti }) => jti.startsWith('studio_'));
  expect(listed).toMatchObject({ hostId: 'member', namespaceId: 'default' });
  await gateway.call(revokeToken, { params: { jti: listed!.jti } });
  expect(await statusOf(gateway, session)).toBe(401);
});

test('a session ends with the token that started it', async () => {
  const gateway = await startGateway();
  const minted = await fetch(`${gateway.url}/api/v1/tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ hostId: 'someone', ttlSeconds: 600 }),
  });
  const { token, jti } = (await minted.json()) as AnyJson;
  const session = await signIn(gateway, { token });
  expect(await statusOf(gateway, session)).toBe(200);
  await gateway.call(revokeToken, { params: { jti } });
  expect(await statusOf(gateway, session)).toBe(401);
  const brief = await signIn(gateway);
  gateway.clock.advance(minutes(12 * 60 + 2));
  expect(await statusOf(gateway, brief)).toBe(401);
});

test('a session of a static token ends within 30 seconds after the token is removed', async () => {
  const gateway = await startGateway();
  const session = await signIn(gateway, { token: MEMBER_TOKEN });
  const other = await signIn(gateway);
  const { store } = gateway.services as { store: { cache: { delete(scope: string, key: string): unknown } } };
  await store.cache.delete('platform', `host:token:${MEMBER_TOKEN}`);
  gateway.clock.advance(seconds(30));
  expect(await statusOf(gateway, session)).toBe(401);
  expect(await statusOf(gateway, other)).toBe(200);
});

test('a sign-out revokes the session and deletes the cookie', async () => {
  const gateway = await startGateway();
  const { cookie, csrf } = await signIn(gateway);
  const headers = { cookie, 'x-svc-csrf': csrf };
  const response = await fetch(`${gateway.url}/studio/session`, { method: 'DELETE', headers });
  expect(response.status).toBe(200);
  expect(response.headers.getSetCookie()[0]).toMatch(/^svc-session-\d+=; Max-Age=0; /);
  expect(await statusOf(gateway, { cookie, csrf })).toBe(401);
});

test('a session has the role of its client, also if the role changes later', async () => {
  const gateway = await startGateway();
  const { clientId, clientSecret } = await gateway.call(createClientCredentials, {
    body: { name: 'viewer' },
  });
  const give = (role: Role) =>
    gateway.call(grantRole, {
      body: { subject: `client:${clientId}`, role, namespaceId: 'default' } as never,
    });
  await give('viewer');
  const session = await signIn(gateway, { clientId, clientSecret });
  const pause = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
  const headers = { cookie: session.cookie, 'x-svc-csrf': session.csrf, 'content-type': 'application/json' };
  const statusOfPause = async () =>
    (await fetch(`${gateway.url}/api/v1/webhooks/pause`, { ...pause, headers })).status;
  expect(await statusOf(gateway, session, '/api/v1/webhooks')).toBe(200);
  expect(await statusOfPause()).toBe(403);
  await give('editor');
  expect(await statusOfPause()).toBe(400);
});

test('a session of an identity provider keeps the claims that decide its role', async () => {
  const clock = manualClock();
  const issuer = await startIssuer(() => clock.now());
  const gateway = await startGateway({ clock, config: { gateway: { oauth: issuer.config } } });
  await gateway.call(grantRole, {
    body: { subject: 'claim:groups=guests', role: 'viewer', namespaceId: 'acme' } as never,
  });
  const token = await issuer.sign({ groups: ['guests'] });
  const { cookie, csrf } = await signIn(gateway, { token });
  const headers = { cookie, 'x-svc-csrf': csrf, 'content-type': 'application/json' };
  const response = await fetch(`${gateway.url}/api/v1/webhooks/pause`, {
    method: 'POST',
    headers,
    body: '{}',
  });
  expect(response.status).toBe(403);
  expect(await statusOf(gateway, { cookie, csrf }, '/api/v1/webhooks')).toBe(200);
  const large = await issuer.sign({ groups: ['guests'], note: 'x'.repeat(4000) });
  expect((await start(gateway, { token: large })).status).toBe(400);
});

test('a session of a link ends with the token that created the link', async () => {
  const gateway = await startGateway();
  const mint = await gateway.call(mintToken, { body: { hostId: 'operator', ttlSeconds: 3600 } });
  const headers = { authorization: `Bearer ${mint.token}` };
  const response = await fetch(`${gateway.url}/api/v1/studio/links`, { method: 'POST', headers });
  const { path } = (await response.json()) as AnyJson;
  const session = await signIn(gateway, { link: path.split('=')[1] });
  expect(await statusOf(gateway, session)).toBe(200);
  await gateway.call(revokeToken, { params: { jti: mint.jti } });
  expect(await statusOf(gateway, session)).toBe(401);
});

test('the token of a session starts no further session, and sign-ins are limited per caller', async () => {
  const gateway = await startGateway();
  const { cookie } = await signIn(gateway, { token: MEMBER_TOKEN });
  expect((await start(gateway, { token: cookie.split('=')[1] })).status).toBe(403);
  const statuses = await Promise.all(
    Array.from({ length: 30 }, async () => (await start(gateway, { token: MEMBER_TOKEN })).status),
  );
  expect(statuses.filter((status) => status === 429)).toHaveLength(1);
});
