import { describe, expect, test } from 'vitest';
import {
  authorizeConnection,
  deleteConnection,
  getConnection,
  listAudit,
  listConnectionProviders,
  listConnections,
} from '../../../../src/contracts/index.ts';
import { minutes } from '../../../../src/kit/time/duration.ts';
import { sharedByTests } from '../../../support/at-end.ts';
import { ADMIN_TOKEN, MEMBER_TOKEN, OTHER_TOKEN, startGateway } from '../../../support/gateway.ts';
import {
  authorizeInBrowser,
  OAUTH_CLIENT_SECRET,
  startOAuthProvider,
  TOKEN_SECONDS,
} from '../../../support/oauth-provider.ts';
import { SignInClient } from '../../../support/sign-in-client.ts';
import { callbackOf, connect, create, finish, LOOPBACK, NAME, show, startPlace, tokenOf } from './support.ts';

let made = 0;
const fresh = (): string => `crm-${++made}`;

describe('authorizing a connection', () => {
  const place = sharedByTests(() => startPlace());

  test('a person authorizes it with PKCE, and a service gets the access token', async () => {
    const { gateway, provider } = place();
    const created = await create(place());
    expect(created).toMatchObject({
      name: NAME,
      status: 'pending',
      issuer: provider.issuer,
      tokenUrl: `${provider.issuer}/token`,
      revocationUrl: `${provider.issuer}/token/revocation`,
      redirectUri: callbackOf(gateway),
      clientSecret: 'stored',
      account: null,
      expiresAt: null,
    });
    expect(created.authorizeUrlExpiresAt).toBe(gateway.clock.now() + minutes(10));
    await expect(tokenOf(gateway)).rejects.toMatchObject({
      code: 'CONNECTION_NOT_AUTHORIZED',
      details: { status: 'pending', hint: `svc connections authorize ${NAME}` },
    });

    const browser = new SignInClient();
    const page = await browser.get(created.authorizeUrl);
    expect(page.status).toBe(200);
    const html = await page.text();
    expect(html).toContain(`<code>${NAME}</code>`);
    expect(html).toContain(new URL(provider.issuer).host);
    const started = new URL(SignInClient.target(await browser.get(`${created.authorizeUrl}/continue`)));
    expect(started.origin).toBe(provider.issuer);
    expect(Object.fromEntries(started.searchParams)).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      prompt: 'consent',
      redirect_uri: callbackOf(gateway),
      scope: 'openid email offline_access items:read',
    });
    const done = await finish(created.authorizeUrl, browser);
    expect(done.status).toBe(200);
    expect(await done.text()).toContain('ada@example.com');

    const [exchange] = provider.requests;
    expect(exchange!.form.get('grant_type')).toBe('authorization_code');
    expect(exchange!.form.get('code_verifier')).toMatch(/^[\w-]{43}$/);
    const now = gateway.clock.now();
    expect(await show(place())).toMatchObject({
      status: 'active',
      account: 'ada@example.com',
      grantedScopes: expect.arrayContaining(['email', 'items:read']),
      refreshes: true,
      authorizedAt: now,
      expiresAt: now + TOKEN_SECONDS * 1000,
      nextRefreshAt: now + TOKEN_SECONDS * 800,
      lastError: null,
    });
    expect(await tokenOf(gateway)).toEqual({
      accessToken: provider.answers.at(-1)!.access_token,
      expiresAt: now + TOKEN_SECONDS * 1000,
    });
  });

  test('an answer of the provider is accepted once, and its link with it', async () => {
    const { provider } = place();
    const { authorizeUrl } = await create(place(), { name: fresh() });
    const browser = new SignInClient();
    const callback = await authorizeInBrowser(browser, authorizeUrl);
    const before = provider.requests.length;
    const answers = await Promise.all([1, 2, 3, 4].map(() => browser.get(callback)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400]);
    expect((await browser.get(callback)).status).toBe(400);
    expect((await browser.get(authorizeUrl)).status).toBe(400);
    expect(provider.requests.length).toBe(before + 1);
  });

  test('of two browsers that opened one link, the first that comes back is accepted', async () => {
    const { authorizeUrl } = await create(place(), { name: fresh() });
    const [one, other] = [new SignInClient(), new SignInClient()];
    const [first, second] = [
      await authorizeInBrowser(one, authorizeUrl),
      await authorizeInBrowser(other, authorizeUrl, 'eve'),
    ];
    expect((await one.get(first)).status).toBe(200);
    expect((await other.get(second)).status).toBe(400);
  });

  test('another browser cannot finish an authorization, and does not end it', async () => {
    const name = fresh();
    const { authorizeUrl } = await create(place(), { name });
    const browser = new SignInClient();
    const callback = await authorizeInBrowser(browser, authorizeUrl);
    const other = new SignInClient();
    expect(await (await other.get(callback)).text()).toContain('another browser');
    await other.get(`${(await create(place(), { name: fresh() })).authorizeUrl}/continue`);
    expect(await (await other.get(callback)).text()).toContain('another browser');
    expect((await show(place(), name)).status).toBe('pending');
    expect((await browser.get(callback)).status).toBe(200);
    expect((await show(place(), name)).status).toBe('active');
  });

  test.each([
    ['another state', (url: URL) => url.searchParams.set('state', 'x'.repeat(43))],
    ['two states', (url: URL) => url.searchParams.append('state', 'x')],
    ['no state', (url: URL) => url.searchParams.delete('state')],
  ])('a callback with %s is refused before the provider is asked', async (_case, change) => {
    const { provider } = place();
    const name = fresh();
    const browser = new SignInClient();
    const callback = new URL(
      await authorizeInBrowser(browser, (await create(place(), { name })).authorizeUrl),
    );
    change(callback);
    const before = provider.requests.length;
    expect((await browser.get(callback.href)).status).toBe(400);
    expect([provider.requests.length, (await show(place(), name)).status]).toEqual([before, 'pending']);
  });

  test.each([
    ['of another issuer', (url: URL) => url.searchParams.set('iss', 'https://attacker.example')],
    ['with two codes', (url: URL) => url.searchParams.append('code', 'x')],
  ])('an answer %s is refused before the code is sent', async (_case, change) => {
    const { provider } = place();
    const name = fresh();
    const browser = new SignInClient();
    const callback = new URL(
      await authorizeInBrowser(browser, (await create(place(), { name })).authorizeUrl),
    );
    change(callback);
    const before = provider.requests.length;
    expect((await browser.get(callback.href)).status).toBe(400);
    expect(provider.requests.length).toBe(before);
    expect(await show(place(), name)).toMatchObject({ status: 'failed' });
  });

  test('an answer with "iss" is refused if the connection has no issuer', async () => {
    const { provider } = place();
    const { issuer } = provider;
    const name = fresh();
    const endpoints = { authorizationUrl: `${issuer}/auth`, tokenUrl: `${issuer}/token` };
    const { authorizeUrl } = await create(place(), { name, endpoints });
    expect((await finish(authorizeUrl)).status).toBe(400);
    expect(await show(place(), name)).toMatchObject({
      status: 'failed',
      lastError: { code: 'issuer_mismatch' },
    });
  });

  test('a code for another verifier is refused by the provider', async () => {
    const names = [fresh(), fresh()];
    const browser = new SignInClient();
    const callbacks = [];
    for (const name of names)
      callbacks.push(
        new URL(await authorizeInBrowser(browser, (await create(place(), { name })).authorizeUrl)),
      );
    callbacks[0]!.searchParams.set('code', callbacks[1]!.searchParams.get('code')!);
    expect((await browser.get(callbacks[0]!.href)).status).toBe(400);
    expect(await show(place(), names[0])).toMatchObject({
      status: 'failed',
      lastError: { code: 'invalid_grant' },
    });
  });

  test('a denied consent is shown without the texts of the provider', async () => {
    const name = fresh();
    const { authorizeUrl } = await create(place(), { name });
    const browser = new SignInClient();
    const answer = await browser.get(await authorizeInBrowser(browser, authorizeUrl, ''));
    const html = await answer.text();
    expect([answer.status, html.includes('refused at the provider'), html.includes('cancelled')]).toEqual([
      400,
      true,
      false,
    ]);
    expect(await show(place(), name)).toMatchObject({
      status: 'failed',
      lastError: { code: 'access_denied' },
    });
    const again = await place().gateway.call(authorizeConnection, { params: { name } });
    expect((await finish(again.authorizeUrl)).status).toBe(200);
    expect(await show(place(), name)).toMatchObject({ status: 'active', lastError: null });
  });

  test('the pages reflect nothing and execute nothing', async () => {
    const { gateway } = place();
    const markup = '<script>alert(1)</script>';
    const pages = await Promise.all(
      [
        `/oauth/callback?state=${encodeURIComponent(markup)}&error=${encodeURIComponent(markup)}`,
        `/oauth/start/${encodeURIComponent(markup)}`,
        `/oauth/start/${'x'.repeat(43)}`,
        `/oauth/start/${'x'.repeat(43)}/continue`,
      ].map((path) => gateway.fetch(path)),
    );
    for (const page of pages) {
      expect(page.status).toBe(400);
      expect(page.headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; style-src 'sha256-[\w+/=]+'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
      );
      expect(page.headers.get('cache-control')).toBe('no-store');
      expect(page.headers.get('referrer-policy')).toBe('no-referrer');
      expect(await page.text()).not.toContain('<script');
    }
  });

  test('the texts of a connection are escaped on its page', async () => {
    const { authorizeUrl } = await create(place(), { name: fresh(), scopes: ["<img/src=x'>"] });
    const html = await (await new SignInClient().get(authorizeUrl)).text();
    expect(html).toContain('&#60;img/src=x&#39;&#62;');
  });

  test('a link and an answer expire after ten minutes', async () => {
    const { gateway } = place();
    const name = fresh();
    const { authorizeUrl } = await create(place(), { name });
    const browser = new SignInClient();
    const callback = await authorizeInBrowser(browser, authorizeUrl);
    gateway.clock.advance(minutes(10));
    expect((await browser.get(callback)).status).toBe(400);
    expect((await browser.get(authorizeUrl)).status).toBe(400);
    expect((await show(place(), name)).status).toBe('pending');
  });

  test('the answer for a deleted connection does not reach another one of its name', async () => {
    const { gateway } = place();
    const name = fresh();
    const { authorizeUrl } = await create(place(), { name });
    const browser = new SignInClient();
    const callback = await authorizeInBrowser(browser, authorizeUrl);
    await gateway.call(deleteConnection, { params: { name } });
    await create(place(), { name });
    expect(await (await browser.get(callback)).text()).toContain('deleted');
    expect((await show(place(), name)).status).toBe('pending');
  });

  test('connections of another namespace are neither shown nor used', async () => {
    const { gateway } = place();
    const name = fresh();
    await connect(place(), { name });
    await expect(gateway.call(getConnection, { params: { name } }, OTHER_TOKEN)).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    await expect(tokenOf(gateway, name, 'other')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect((await gateway.call(listConnections, {}, OTHER_TOKEN)).items).toEqual([]);
    await create(place(), { name }, OTHER_TOKEN);
    const { items } = await gateway.call(listConnections, {}, OTHER_TOKEN);
    expect(items.map((one) => [one.name, one.status])).toEqual([[name, 'pending']]);
    expect((await show(place(), name)).status).toBe('active');
  });

  test('the internal endpoint needs the service key', async () => {
    const { gateway } = place();
    for (const headers of [{}, { authorization: `Bearer ${ADMIN_TOKEN}` }] as Array<Record<string, string>>) {
      const reply = await gateway.fetch('/internal/connections/token', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ name: NAME }),
      });
      expect(reply.status).toBe(401);
    }
  });

  test('changes and the completed authorization are in the audit log', async () => {
    const { gateway } = place();
    const name = fresh();
    await connect(place(), { name });
    await gateway.call(authorizeConnection, { params: { name } });
    const { items } = await gateway.call(listAudit, { query: { object: `connection:${name}` } });
    expect(items.map(({ action, actor }) => `${action} ${actor}`)).toEqual([
      'connection.authorize operator',
      'connection.connect operator',
      'connection.create operator',
    ]);
  });

  test('a name is taken once', async () => {
    const name = fresh();
    await create(place(), { name });
    await expect(create(place(), { name })).rejects.toMatchObject({ code: 'CONFLICT' });
    expect(MEMBER_TOKEN).not.toBe(ADMIN_TOKEN);
  });
});

test('a public client sends no secret', async () => {
  const [gateway, provider] = await Promise.all([
    startGateway({ config: LOOPBACK }),
    startOAuthProvider({ isPublic: true }),
  ]);
  provider.trust(callbackOf(gateway));
  const place = { gateway, provider };
  await connect(place, { clientSecret: undefined });
  expect(await show(place)).toMatchObject({ status: 'active', clientSecret: null });
  expect(provider.requests[0]!.authorization).toBeUndefined();
});

test('the secret goes into the body if the provider takes it there', async () => {
  const place = await startPlace();
  const { authorizeUrl } = await create(place, { clientAuth: 'post' });
  await finish(authorizeUrl);
  const [{ form, authorization }] = place.provider.requests as [(typeof place.provider.requests)[0]];
  expect([form.get('client_secret'), authorization]).toEqual([OAUTH_CLIENT_SECRET, undefined]);
});

test('the catalogue names https endpoints only', async () => {
  const gateway = await startGateway();
  const { items } = await gateway.call(listConnectionProviders, {});
  expect(items.map(({ id }) => id)).toEqual(expect.arrayContaining(['google', 'github', 'slack', 'gitlab']));
});
