import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import {
  authorizeConnection,
  createConnection,
  deleteConnection,
  listAudit,
  refreshConnection,
  revokeConnection,
} from '../../../../src/contracts/index.ts';
import { minutes, seconds } from '../../../../src/kit/time/duration.ts';
import { atEnd } from '../../../support/at-end.ts';
import { startGateway } from '../../../support/gateway.ts';
import { TOKEN_SECONDS } from '../../../support/oauth-provider.ts';
import { bodyOf, connect, finish, NAME, type Place, show, startPlace, tokenOf } from './support.ts';

const refresh = ({ gateway }: Place, name = NAME) => gateway.call(refreshConnection, { params: { name } });

/** Moves the clock until the condition holds, because a sweep in flight skips the ticks meanwhile. */
async function advanceUntil({ gateway }: Place, isMet: () => boolean | Promise<boolean>): Promise<void> {
  await expect
    .poll(async () => {
      gateway.clock.advance(seconds(5));
      return isMet();
    })
    .toBe(true);
}

const EXPIRES_MS = seconds(TOKEN_SECONDS);

test('a token is refreshed at 80 % of its lifetime, without being used', async () => {
  const place = await startPlace();
  await connect(place);
  const first = await tokenOf(place.gateway);
  const { clock } = place.gateway;
  const dueAt = clock.now() + EXPIRES_MS * 0.8;
  clock.advance(EXPIRES_MS * 0.8 - seconds(30));
  await advanceUntil(place, () => place.provider.refreshes().length === 1);
  expect(clock.now()).toBeGreaterThanOrEqual(dueAt);
  await advanceUntil(place, async () => (await show(place)).lastRefreshedAt !== null);
  expect(place.provider.refreshes()).toHaveLength(1);
  const second = await tokenOf(place.gateway);
  expect(second.accessToken).not.toBe(first.accessToken);
  expect(second.accessToken).toBe(place.provider.answers.at(-1)!.access_token);
  expect(second.expiresAt! - first.expiresAt!).toBeGreaterThanOrEqual(EXPIRES_MS * 0.79);
  expect(await show(place)).toMatchObject({ status: 'active', account: 'ada@example.com', lastError: null });
});

test('each refresh sends the refresh token of the last answer', async () => {
  const place = await startPlace();
  await connect(place);
  for (let n = 0; n < 4; n++) expect((await refresh(place)).status).toBe('active');
  const sent = place.provider.refreshes().map(({ form }) => form.get('refresh_token'));
  const given = place.provider.answers.map(({ refresh_token }) => refresh_token);
  expect(sent).toEqual(given.slice(0, 4));
  expect(new Set(given).size).toBe(5);
});

test('many callers of an expired token cause one request, and get the same token', async () => {
  const place = await startPlace();
  await connect(place);
  let answer = (): void => {};
  place.provider.hold(new Promise((resolve) => (answer = () => resolve(null))));
  place.gateway.clock.jump(place.gateway.clock.now() + EXPIRES_MS - seconds(30));
  const callers = Array.from({ length: 50 }, () => tokenOf(place.gateway));
  await expect.poll(() => place.provider.refreshes().length).toBe(1);
  answer();
  const tokens = new Set((await Promise.all(callers)).map(({ accessToken }) => accessToken));
  expect([...tokens]).toEqual([place.provider.answers.at(-1)!.access_token]);
  expect(place.provider.refreshes()).toHaveLength(1);
});

test('two gateways on one store send one request', async () => {
  const place = await startPlace({ sharesStore: true, env: { SVC_INSTANCE: 'one' } });
  await connect(place);
  const { clock, dataDir } = place.gateway;
  const other = await startGateway({
    ...{ dataDir, clock, sharesStore: true, env: { SVC_INSTANCE: 'two' } },
    config: { outgoing: { allow: ['127.0.0.1'] } },
  });
  clock.jump(clock.now() + EXPIRES_MS + 1);
  const callers = Array.from({ length: 20 }, (_, n) => tokenOf([place.gateway, other][n % 2]!));
  const tokens = new Set((await Promise.all(callers)).map(({ accessToken }) => accessToken));
  expect([tokens.size, place.provider.refreshes().length]).toEqual([1, 1]);
});

test('a refused refresh token makes the connection fail, until a person authorizes it again', async () => {
  const place = await startPlace();
  await connect(place);
  const grant = await place.provider
    .provider()
    .RefreshToken.find(place.provider.answers.at(-1)!.refresh_token!);
  await grant!.destroy();
  await expect(refresh(place)).rejects.toMatchObject({
    code: 'CONNECTION_NOT_AUTHORIZED',
    details: { status: 'failed', reason: 'invalid_grant', hint: `svc connections authorize ${NAME}` },
  });
  expect(await show(place)).toMatchObject({
    status: 'failed',
    expiresAt: null,
    nextRefreshAt: null,
    lastError: { code: 'invalid_grant' },
  });
  await expect(tokenOf(place.gateway)).rejects.toMatchObject({ code: 'CONNECTION_NOT_AUTHORIZED' });
  const logged = place.gateway.logs.lines.filter((line) => line.reasonCode === 'CONNECTION_FAILED');
  expect(logged).toHaveLength(1);
  const { authorizeUrl } = await place.gateway.call(authorizeConnection, { params: { name: NAME } });
  await finish(authorizeUrl);
  expect(await show(place)).toMatchObject({ status: 'active', lastError: null });
});

test('while the provider is down, the token is used until it expires, and then refreshed again', async () => {
  const place = await startPlace();
  await connect(place);
  const { gateway, provider } = place;
  const first = await tokenOf(gateway);
  provider.tamper((_request, response) => {
    response.writeHead(503, { 'content-type': 'text/html' }).end('<h1>down</h1>');
    return true;
  });
  gateway.clock.advance(EXPIRES_MS * 0.8);
  await advanceUntil(place, async () => (await show(place)).lastError !== null);
  expect((await show(place)).lastError).toMatchObject({ code: 'invalid_answer' });
  expect(await tokenOf(gateway)).toEqual(first);
  gateway.clock.jump(first.expiresAt! + minutes(5));
  await expect(tokenOf(gateway)).rejects.toMatchObject({
    code: 'CONNECTION_UNAVAILABLE',
    details: { connection: NAME, retryAfterSeconds: expect.any(Number) },
  });
  expect(await show(place)).toMatchObject({ status: 'expired' });
  const before = provider.refreshes().length;
  await Promise.allSettled([1, 2, 3, 4].map(() => tokenOf(gateway)));
  expect(provider.refreshes().length).toBe(before);
  provider.tamper(undefined);
  gateway.clock.jump(gateway.clock.now() + minutes(2));
  expect((await tokenOf(gateway)).accessToken).toBe(provider.answers.at(-1)!.access_token);
  expect(await show(place)).toMatchObject({ status: 'active', lastError: null });
});

test('a connection without a refresh token expires, and says how to mend it', async () => {
  const place = await startPlace();
  await connect(place, { scopes: ['openid', 'items:read'] });
  expect(await show(place)).toMatchObject({ status: 'active', refreshes: false, nextRefreshAt: null });
  await expect(refresh(place)).rejects.toMatchObject({ code: 'CONFLICT' });
  place.gateway.clock.jump(place.gateway.clock.now() + EXPIRES_MS);
  expect((await show(place)).status).toBe('expired');
  await expect(tokenOf(place.gateway)).rejects.toMatchObject({
    code: 'CONNECTION_NOT_AUTHORIZED',
    message: expect.stringContaining('no refresh token'),
  });
  expect(place.provider.refreshes()).toHaveLength(0);
});

test('a revocation reaches the provider, and the tokens are gone', async () => {
  const place = await startPlace();
  await connect(place);
  const { access_token, refresh_token } = place.provider.answers.at(-1)!;
  const revoked = await place.gateway.call(revokeConnection, { params: { name: NAME } });
  expect(revoked).toMatchObject({ status: 'revoked', revokedAtProvider: true, expiresAt: null });
  const sent = place.provider.requests.filter(({ path }) => path === '/token/revocation');
  expect(sent.map(({ form }) => form.get('token'))).toEqual([refresh_token, access_token]);
  await expect(tokenOf(place.gateway)).rejects.toMatchObject({ details: { status: 'revoked' } });
  expect(await place.provider.provider().RefreshToken.find(refresh_token!)).toBeUndefined();
});

test('a deletion revokes, and succeeds if the provider is down', async () => {
  const place = await startPlace();
  await connect(place);
  expect(await place.gateway.call(deleteConnection, { params: { name: NAME } })).toEqual({
    deleted: true,
    revokedAtProvider: true,
  });
  await connect(place);
  await place.provider.stop();
  expect(await place.gateway.call(deleteConnection, { params: { name: NAME } })).toEqual({
    deleted: true,
    revokedAtProvider: false,
  });
  await expect(tokenOf(place.gateway)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  const { items } = await place.gateway.call(listAudit, { query: { action: 'connection.delete' } });
  expect(items).toHaveLength(2);
});

test('a deletion during a refresh revokes the tokens that the refresh brings', async () => {
  const place = await startPlace();
  await connect(place);
  let answer = (): void => {};
  place.provider.hold(new Promise((resolve) => (answer = () => resolve(null))));
  const refreshing = Promise.allSettled([refresh(place)]);
  await expect.poll(() => place.provider.refreshes().length).toBe(1);
  const deleting = place.gateway.call(deleteConnection, { params: { name: NAME } });
  await expect
    .poll(() => place.provider.requests.filter(({ path }) => path === '/token/revocation').length)
    .toBe(1);
  answer();
  await deleting;
  await refreshing;
  await expect(tokenOf(place.gateway)).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

describe('a hostile token endpoint', () => {
  const HTML = '<script>alert(document.cookie)</script>';
  test.each<[string, RequestListener, string]>([
    [
      'that redirects',
      (_request, response) => response.writeHead(307, { location: 'http://127.0.0.1:1/steal' }).end(),
      'redirected',
    ],
    [
      'with an endless answer',
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        const more = (): void => {
          while (!response.destroyed && response.write('x'.repeat(65_536)));
        };
        response.on('drain', more);
        more();
      },
      'answer_too_large',
    ],
    [
      'with an HTML error',
      (_request, response) => response.writeHead(400, { 'content-type': 'text/html' }).end(HTML),
      'invalid_answer',
    ],
    [
      'with markup as error',
      (_request, response) =>
        response
          .writeHead(400, { 'content-type': 'application/json' })
          .end(JSON.stringify({ error: HTML, error_description: HTML })),
      'unknown_error',
    ],
    ['that resets', (_request, response) => response.destroy(), 'unreachable'],
    [
      'without a token',
      (_request, response) =>
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"token_type":"bearer"}'),
      'invalid_answer',
    ],
    [
      'with another type of token',
      (_request, response) =>
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end('{"access_token":"a","token_type":"mac"}'),
      'invalid_answer',
    ],
  ])('%s gives no token and no text', async (_case, listener, code) => {
    const place = await startPlace();
    const { authorizeUrl } = await place.gateway.call(createConnection, {
      body: bodyOf(place.provider) as never,
    });
    place.provider.tamper((request, response) => {
      listener(request as never, response as never);
      return true;
    });
    const answer = await finish(authorizeUrl);
    expect([answer.status >= 400, (await answer.text()).includes('alert')]).toEqual([true, false]);
    const shown = await show(place);
    expect(shown).toMatchObject({ status: 'failed', lastError: { code } });
    expect(JSON.stringify(shown)).not.toContain('alert');
  });
});

describe('endpoints with private addresses', () => {
  test.each([
    ['https://169.254.169.254/token'],
    ['https://10.0.0.5/token'],
    ['https://[::1]/token'],
    ['https://[fd00::1]/token'],
    ['http://127.0.0.1:5432/token'],
    ['https://0x7f000001/token'],
  ])('%s is refused when the connection is created', async (tokenUrl) => {
    const gateway = await startGateway();
    const endpoints = { authorizationUrl: 'https://provider.example/auth', tokenUrl };
    await expect(
      gateway.call(createConnection, {
        body: { name: NAME, endpoints, clientId: 'c', clientSecret: 'secret-of-the-client' },
      }),
    ).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
  });

  test('a name that resolves to one is refused when it is used, and the service is not reached', async () => {
    let reached = 0;
    const server = createServer((_request, response) => {
      reached++;
      response.end('{}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    atEnd(() => new Promise<void>((resolve) => void server.close(() => resolve())));
    const { port } = server.address() as AddressInfo;
    const gateway = await startGateway();
    await expect(
      gateway.call(createConnection, {
        body: { name: NAME, endpoints: { issuer: `http://localhost:${port}` }, clientId: 'c' },
      }),
    ).rejects.toMatchObject({ code: 'PERMISSION_DENIED' });
    expect(reached).toBe(0);
  });

  test.each([
    ['http://provider.example/token', 'must be https'],
    ['https://user:pass@provider.example/token', 'no user'],
    ['file:///etc/passwd', ''],
  ])('%s is no token endpoint', async (tokenUrl, why) => {
    const gateway = await startGateway();
    const endpoints = { authorizationUrl: 'https://provider.example/auth', tokenUrl };
    await expect(
      gateway.call(createConnection, { body: { name: NAME, endpoints, clientId: 'c' } }),
    ).rejects.toMatchObject({ code: 'VALIDATION_ERROR', message: expect.stringContaining(why) });
  });

  test('an issuer must vouch for the token endpoint', async () => {
    const place = await startPlace();
    await expect(
      place.gateway.call(createConnection, {
        body: {
          ...(bodyOf(place.provider) as never as { name: string; clientId: string }),
          endpoints: {
            issuer: place.provider.issuer,
            authorizationUrl: `${place.provider.issuer}/auth`,
            tokenUrl: 'https://attacker.example/token',
          },
        },
      }),
    ).rejects.toMatchObject({ code: 'VALIDATION_ERROR', message: expect.stringContaining('tokenUrl') });
  });
});
