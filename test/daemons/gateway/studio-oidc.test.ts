import { expect, test } from 'vitest';
import { grantRole, listTokens, type Role, revokeRole, revokeToken } from '../../../src/contracts/index.ts';
import { returnPath } from '../../../src/daemons/gateway/domain/identity/oidc/return-path.ts';
import { hours, minutes } from '../../../src/kit/time/duration.ts';
import type { AnyJson } from '../../support/any-json.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import {
  CLIENT_ID,
  CLIENT_SECRET,
  startOidcProvider,
  type TestProvider,
  type TestProviderOptions,
} from '../../support/oidc-provider.ts';
import { SignInClient } from '../../support/sign-in-client.ts';

const ROLES = {
  'svc-admins': { role: 'admin', namespaceId: '*' },
  'svc-viewers': { role: 'viewer', namespaceId: 'acme' },
};

interface Place {
  gateway: TestGateway;
  provider: TestProvider;
  start: string;
}

async function open(options: TestProviderOptions = {}): Promise<Place> {
  const provider = await startOidcProvider(options);
  const gateway = await gatewayOf(provider);
  const start = `${localhost(gateway)}/studio/oidc/sign-in`;
  provider.trust(`${localhost(gateway)}/studio/oidc/callback`);
  return { gateway, provider, start };
}

function gatewayOf(
  provider: TestProvider,
  oidc: object = {},
  publicUrl: string | null = null,
): Promise<TestGateway> {
  return startGateway({
    env: { STUDIO_SECRET: CLIENT_SECRET },
    config: {
      gateway: { publicUrl },
      studio: {
        oidc: {
          ...{ issuer: provider.issuer, clientId: CLIENT_ID, roleClaim: 'groups', roles: ROLES },
          // biome-ignore lint/suspicious/noTemplateCurlyInString: literal config syntax
          clientSecret: '${STUDIO_SECRET}',
          ...oidc,
        },
      },
    },
  });
}

const localhost = ({ url }: TestGateway): string => `http://localhost:${new URL(url).port}`;

/** Signs a person in, and returns where the gateway leads at the end. */
async function signIn({ start }: Place, login: string, client = new SignInClient()) {
  const callback = await client.signIn(start, login);
  return { client, callback, end: SignInClient.target(await client.get(callback)) };
}

/** Calls the gateway with the session of a client. */
async function asSession(client: SignInClient, { gateway }: Place, path: string, init: RequestInit = {}) {
  const shown = await client.get(`${localhost(gateway)}/studio/session`);
  const { csrfToken } = (await shown.json()) as AnyJson;
  const headers = { 'x-svc-csrf': csrfToken ?? '', ...(init.headers as object) };
  return client.get(localhost(gateway) + path, { ...init, headers });
}

const problemOf = (url: string): string | null => new URL(url).searchParams.get('problem');

test('the sign-in form learns of the provider, and without one there is none', async () => {
  const place = await open();
  const options = await (await place.gateway.fetch('/studio/sign-in/options')).json();
  expect(options).toEqual({
    identityProvider: { name: new URL(place.provider.issuer).host, url: place.start },
  });
  const other = await startGateway();
  expect(await (await other.fetch('/studio/sign-in/options')).json()).toEqual({ identityProvider: null });
  const page = await other.fetch('/studio/oidc/sign-in', { redirect: 'manual' });
  expect(page.headers.has('location')).toBe(false);
});

test.each([
  ['the ID token', true],
  ['the userinfo endpoint', false],
])('a person signs in, with groups from %s', async (_place, hasGroupsInToken) => {
  const place = await open({ hasGroupsInToken });
  const { client, end } = await signIn(
    { ...place, start: `${place.start}?returnTo=/studio/runs?status=failed` },
    'ada',
  );
  expect(end).toBe(`${localhost(place.gateway)}/studio/runs?status=failed`);
  const who = await (await asSession(client, place, '/api/v1/whoami')).json();
  expect(who).toMatchObject({
    hostId: 'oidc:ada',
    namespaceId: 'default',
    kind: 'oidc',
    admin: true,
    role: 'admin',
  });
  expect((await asSession(client, place, '/api/v1/clients', jsonBody({ name: 'ci' }))).status).toBe(201);
});

const jsonBody = (body: object): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

test('a person has only the role and the namespace of the group', async () => {
  const place = await open();
  const { client } = await signIn(place, 'eve');
  const who = await (await asSession(client, place, '/api/v1/whoami')).json();
  expect(who).toMatchObject({ hostId: 'oidc:eve', namespaceId: 'acme', admin: false, role: 'viewer' });
  expect((await asSession(client, place, '/api/v1/webhooks')).status).toBe(200);
  expect((await asSession(client, place, '/api/v1/clients', jsonBody({ name: 'x' }))).status).toBe(403);
  const elsewhere = { headers: { 'x-svc-namespace': 'default' } };
  expect((await asSession(client, place, '/api/v1/webhooks', elsewhere)).status).toBe(403);
  expect((await asSession(client, place, '/api/v1/studio/links', { method: 'POST' })).status).toBe(403);
});

test('the session is listed, lasts 12 hours, ends when it is revoked and at the sign-out', async () => {
  const place = await open();
  const { gateway } = place;
  const { client } = await signIn(place, 'ada');
  const { items } = await gateway.call(listTokens, { query: { limit: 10 } });
  expect(items).toMatchObject([{ hostId: 'oidc:ada', namespaceId: 'default', revokedAt: null }]);
  expect(items[0]!.jti).toMatch(/^studio_/);
  expect(items[0]!.expiresAt - gateway.clock.now()).toBe(hours(12));
  await gateway.call(revokeToken, { params: { jti: items[0]!.jti } });
  expect((await asSession(client, place, '/api/v1/whoami')).status).toBe(401);

  const again = await signIn(place, 'ada');
  expect((await asSession(again.client, place, '/studio/session', { method: 'DELETE' })).status).toBe(200);
  expect((await asSession(again.client, place, '/api/v1/whoami')).status).toBe(401);
  const late = await signIn(place, 'ada');
  gateway.clock.advance(hours(12) + minutes(1));
  expect((await asSession(late.client, place, '/api/v1/whoami')).status).toBe(401);
});

test('a person without a role is refused, and gets no session', async () => {
  const place = await open();
  const { client, end } = await signIn(place, 'mallory');
  expect(end).toMatch(/\/studio\/sign-in\?problem=no_role&request=[\w-]+$/);
  expect((await client.get(`${localhost(place.gateway)}/studio/session`)).status).toBe(401);
  expect((await place.gateway.call(listTokens, { query: { limit: 10 } })).items).toEqual([]);
  expect(place.gateway.logs.lines).toContainEqual(
    expect.objectContaining({
      reasonCode: 'SIGN_IN_NO_ROLE',
      message: expect.stringContaining('"oidc:mallory"'),
    }),
  );
});

test('a role of `svc roles` for the claim admits a person, and its removal ends the session at once', async () => {
  const place = await open();
  const { gateway } = place;
  const role = { subject: 'claim:groups=staff', namespaceId: 'default' } as const;
  await gateway.call(grantRole, { body: { ...role, role: 'viewer' as Role } as never });
  const { client } = await signIn(place, 'mallory');
  const who = await (await asSession(client, place, '/api/v1/whoami')).json();
  expect(who).toMatchObject({ role: 'viewer', admin: false, namespaceId: 'default' });
  await gateway.call(revokeRole, { query: role as never });
  expect((await asSession(client, place, '/api/v1/whoami')).status).toBe(401);
});

test('a session ends when the config gives its group no role any more, or names another provider', async () => {
  const place = await open();
  const { client } = await signIn(place, 'eve');
  const token = [...client.cookiesOf(place.start).values()].at(-1)!;
  const statusAt = async (oidc: object): Promise<number> => {
    const other = await gatewayOf(place.provider, oidc);
    return (await other.fetch('/api/v1/whoami', { headers: { authorization: `Bearer ${token}` } })).status;
  };
  expect(await statusAt({})).toBe(200);
  expect(await statusAt({ roles: {} })).toBe(401);
  expect(await statusAt({ clientId: 'another' })).toBe(401);
  const without = await startGateway();
  const answer = await without.fetch('/api/v1/whoami', { headers: { authorization: `Bearer ${token}` } });
  expect(answer.status).toBe(401);
});

test('another gateway behind the same address finishes a sign-in', async () => {
  const provider = await startOidcProvider();
  const publicUrl = 'http://localhost:4999';
  const [first, second] = [
    await gatewayOf(provider, {}, publicUrl),
    await gatewayOf(provider, {}, publicUrl),
  ];
  provider.trust(`${publicUrl}/studio/oidc/callback`);
  const client = new SignInClient();
  const callback = new URL(await client.signIn(`${first.url}/studio/oidc/sign-in`, 'ada'));
  for (const [name, value] of client.cookiesOf(first.url)) client.cookiesOf(second.url).set(name, value);
  const answer = await client.get(second.url + callback.pathname + callback.search);
  expect(answer.headers.get('location')).toBe('/studio/');
  const session = await client.get(`${second.url}/studio/session`);
  expect(await session.json()).toMatchObject({ hostId: 'oidc:ada', admin: true });
});

test('a code is accepted once', async () => {
  const place = await open();
  const client = new SignInClient();
  const callback = await client.signIn(place.start, 'ada');
  const kept = new Map(client.cookiesOf(place.start));
  expect(problemOf(SignInClient.target(await client.get(callback)))).toBe(null);
  const thief = new SignInClient();
  for (const [name, value] of kept) thief.cookiesOf(place.start).set(name, value);
  expect(problemOf(SignInClient.target(await thief.get(callback)))).toBe('invalid');
  expect(problemOf(SignInClient.target(await client.get(callback)))).toBe('not_begun');
});

test('an answer is refused in a browser that did not begin the sign-in, or began another one', async () => {
  const place = await open();
  const victim = new SignInClient();
  const attacker = new SignInClient();
  const callback = await attacker.signIn(place.start, 'ada');
  expect(problemOf(SignInClient.target(await victim.get(callback)))).toBe('not_begun');
  await victim.signIn(place.start, 'eve');
  expect(problemOf(SignInClient.target(await victim.get(callback)))).toBe('invalid');
  const forged = new URL(callback);
  forged.searchParams.set('state', 'wrong');
  expect(problemOf(SignInClient.target(await attacker.get(forged.href)))).toBe('invalid');
});

test('a sign-in that took longer than ten minutes, or whose cookie was changed, is refused', async () => {
  const place = await open();
  const client = new SignInClient();
  const callback = await client.signIn(place.start, 'ada');
  place.gateway.clock.advance(minutes(10) + 1);
  expect(problemOf(SignInClient.target(await client.get(callback)))).toBe('not_begun');
  const other = new SignInClient();
  const again = await other.signIn(place.start, 'ada');
  const [[name, value]] = [...other.cookiesOf(place.start)] as [[string, string]];
  other.cookiesOf(place.start).set(name, `${value.slice(0, -2)}${value.endsWith('AA') ? 'BB' : 'AA'}`);
  expect(problemOf(SignInClient.target(await other.get(again)))).toBe('not_begun');
});

test('the issuer of the answer must be the configured one', async () => {
  const place = await open();
  const client = new SignInClient();
  const callback = new URL(await client.signIn(place.start, 'ada'));
  callback.searchParams.set('iss', 'https://evil.example');
  expect(problemOf(SignInClient.target(await client.get(callback.href)))).toBe('invalid');
});

test.each([
  ['a wrong nonce', (claims, sign) => sign({ ...claims, nonce: 'other' })],
  ['no nonce', ({ nonce: _, ...claims }, sign) => sign(claims)],
  ['a wrong issuer', (claims, sign) => sign({ ...claims, iss: 'https://evil.example' })],
  ['a wrong audience', (claims, sign) => sign({ ...claims, aud: 'other' })],
  ['a past expiry', (claims, sign) => sign({ ...claims, exp: claims.iat! - 600 })],
  ['no signature (alg none)', (claims) => `${part({ alg: 'none' })}.${part(claims)}.`],
  [
    'other claims under its signature',
    async (claims, sign) => {
      const [header, , signature] = (await sign(claims)).split('.');
      return `${header}.${part({ ...claims, sub: 'ada' })}.${signature}`;
    },
  ],
] satisfies Array<[string, NonNullable<Parameters<TestProvider['forge']>[0]>]>)(
  'an ID token with %s is refused',
  async (_name, forge) => {
    const place = await open();
    place.provider.forge(forge as NonNullable<Parameters<TestProvider['forge']>[0]>);
    const { client, end } = await signIn(place, 'eve');
    expect(problemOf(end)).toBe('invalid');
    expect((await client.get(`${localhost(place.gateway)}/studio/session`)).status).toBe(401);
  },
);

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

test('a person who cancels at the provider learns so', async () => {
  const place = await open();
  const { end } = await signIn(place, '');
  expect(problemOf(end)).toBe('refused');
});

test('the gateway starts while the provider is down, says so at a sign-in, and recovers', async () => {
  const provider = await startOidcProvider();
  const gateway = await gatewayOf(provider);
  const start = `${localhost(gateway)}/studio/oidc/sign-in`;
  const client = new SignInClient();
  expect(problemOf(SignInClient.target(await client.get(start)))).toBe('unavailable');
  provider.trust(`${localhost(gateway)}/studio/oidc/callback`);
  gateway.clock.advance(minutes(1));
  const { end } = await signIn({ gateway, provider, start }, 'ada');
  expect(end).toBe(`${localhost(gateway)}/studio/`);
});

test('failed sign-ins of an address are limited, and its logins go on', async () => {
  const place = await open();
  const problems: Array<string | null> = [];
  const callback = `${localhost(place.gateway)}/studio/oidc/callback?code=x&state=y`;
  for (let attempt = 0; attempt < 31; attempt++) {
    const client = new SignInClient();
    await client.get(place.start);
    problems.push(problemOf(SignInClient.target(await client.get(callback))));
  }
  expect(new Set(problems.slice(0, 30))).toEqual(new Set(['invalid']));
  // The 31st sign-in cannot begin, so its page names the limit, too.
  expect(problems.at(-1)).toBe('too_many');
  expect((await place.gateway.fetch('/auth/token', jsonBody(UNKNOWN_CLIENT))).status).toBe(401);
});

const UNKNOWN_CLIENT = { clientId: 'unknown', clientSecret: 'wrong' };

test('pages that open the addresses of the sign-in lock nobody of their address out', async () => {
  const place = await open();
  const { gateway, start } = place;
  const callback = `${localhost(gateway)}/studio/oidc/callback?code=x&state=y`;
  for (let attempt = 0; attempt < 31; attempt++)
    expect(problemOf(SignInClient.target(await new SignInClient().get(callback)))).toBe('not_begun');
  expect((await gateway.fetch('/auth/token', jsonBody(UNKNOWN_CLIENT))).status).toBe(401);
  expect(problemOf((await signIn({ gateway, provider: place.provider, start }, 'ada')).end)).toBe(null);
});

test('sign-ins that fail because the provider is down are not counted', async () => {
  const provider = await startOidcProvider();
  const gateway = await gatewayOf(provider);
  const client = new SignInClient();
  for (let attempt = 0; attempt < 31; attempt++) {
    const answer = await client.get(`${localhost(gateway)}/studio/oidc/sign-in`);
    expect(problemOf(SignInClient.target(answer))).toBe('unavailable');
  }
});

test('the highest role decides the namespace of the session, then the name, whatever the order of the config', async () => {
  const provider = await startOidcProvider();
  const namespaceOf = async (roles: Record<string, object>): Promise<unknown> => {
    const gateway = await gatewayOf(provider, { roles });
    provider.trust(`${localhost(gateway)}/studio/oidc/callback`);
    const start = `${localhost(gateway)}/studio/oidc/sign-in`;
    const { client } = await signIn({ gateway, provider, start }, 'some');
    const session = (await (await client.get(`${localhost(gateway)}/studio/session`)).json()) as AnyJson;
    return session.namespaceId;
  };
  const b = { role: 'viewer', namespaceId: 'beta' };
  const a = { role: 'viewer', namespaceId: 'acme' };
  expect(await namespaceOf({ 'b-viewers': b, 'a-viewers': { ...a, role: 'editor' }, 7: b })).toBe('acme');
  expect(await namespaceOf({ 'b-viewers': b, 'a-viewers': a })).toBe('acme');
  expect(await namespaceOf({ 'a-viewers': a, 7: { ...b, namespaceId: '*' } })).toBe('default');
});

test('a person whose groups do not fit into a cookie is refused, and the page says so', async () => {
  const provider = await startOidcProvider();
  const admins = { role: 'admin', namespaceId: '*' };
  const groups = ['1', '2', '3'].map((n) => n + '€'.repeat(240));
  const endWith = async (names: string[]) => {
    const gateway = await gatewayOf(provider, {
      roles: Object.fromEntries(names.map((name) => [name, admins])),
    });
    provider.trust(`${localhost(gateway)}/studio/oidc/callback`);
    const place = { gateway, provider, start: `${localhost(gateway)}/studio/oidc/sign-in` };
    const { client, end } = await signIn(place, 'many');
    const sizes = [...client.cookiesOf(place.start)].map((pair) => Buffer.byteLength(pair.join('=')));
    return { gateway, problem: problemOf(end), largest: Math.max(0, ...sizes) };
  };
  const fits = await endWith(groups.slice(0, 2));
  expect(fits.problem).toBe(null);
  expect(fits.largest).toBeGreaterThan(2000);
  expect(fits.largest).toBeLessThan(4096);
  const { gateway, problem } = await endWith(groups);
  expect(problem).toBe('too_large');
  expect(gateway.logs.lines).toContainEqual(
    expect.objectContaining({
      reasonCode: 'SIGN_IN_TOO_LARGE',
      message: expect.stringContaining('"oidc:many" a role take 2173 bytes'),
    }),
  );
});

test('the cookie of a sign-in is HttpOnly, short-lived and encrypted, and never reaches a service', async () => {
  const place = await open();
  const answer = await fetch(place.start, { redirect: 'manual' });
  const [cookie] = answer.headers.getSetCookie();
  expect(cookie).toMatch(/^svc-session-oidc-\d+=v1\.[\w.-]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/);
  const target = new URL(answer.headers.get('location')!);
  expect(target.searchParams.get('code_challenge_method')).toBe('S256');
  expect(cookie).not.toContain(target.searchParams.get('state'));
  expect(answer.headers.get('cache-control')).toBe('no-store');
});

test('behind an https URL, the cookie is Secure and the provider leads back to that URL', async () => {
  const provider = await startOidcProvider();
  const gateway = await startGateway({
    config: {
      gateway: { publicUrl: 'https://svc.example.com/' },
      studio: { oidc: { issuer: provider.issuer, clientId: CLIENT_ID, roleClaim: 'groups' } },
    },
  });
  provider.trust('https://svc.example.com/studio/oidc/callback');
  const answer = await fetch(`${gateway.url}/studio/oidc/sign-in`, { redirect: 'manual' });
  expect(answer.headers.getSetCookie()[0]).toMatch(/^__Host-svc-session-oidc-443=.*; Secure$/);
  const target = new URL(answer.headers.get('location')!);
  expect(target.searchParams.get('redirect_uri')).toBe('https://svc.example.com/studio/oidc/callback');
});

test.each([
  ['/studio/runs?status=failed', '/studio/runs?status=failed'],
  ['//evil.example/studio/', '/studio/'],
  ['https://evil.example/studio/', '/studio/'],
  ['/studio/..//evil.example', '/studio/'],
  ['/studio/\\evil.example', '/studio/'],
  ['\\\\evil.example', '/studio/'],
  ['/api/v1/whoami', '/studio/'],
  ['/studio/oidc/sign-in', '/studio/'],
  ['javascript:alert(1)', '/studio/'],
  [['/studio/runs', '/studio/jobs'], '/studio/'],
  [undefined, '/studio/'],
])('after a sign-in, the return path %j leads to %s', (asked, path) => {
  expect(returnPath(asked)).toBe(path);
});
