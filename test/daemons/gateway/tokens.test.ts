import { createHmac, generateKeyPairSync } from 'node:crypto';
import { SignJWT } from 'jose';
import { describe, expect, test } from 'vitest';
import { exchangeToken, listClients, PlatformConfig, refreshToken } from '../../../src/contracts/index.ts';
import { hours, seconds } from '../../../src/kit/time/duration.ts';
import { TEST_KEYS, TEST_OPERATOR } from '../../support/daemon.ts';
import { asBearer } from './support/login.ts';
import { rawGet } from './support/raw-http.ts';
import { CI_HEADERS, CI_TOKEN, signJwt, startGateway, type TestGateway } from './support/start-gateway.ts';

const PATH = '/api/v1/anything';

async function statusWith(gateway: TestGateway, token: string): Promise<number> {
  return (await gateway.fetch(PATH, { headers: { authorization: `Bearer ${token}` } })).status;
}

test('a static token reaches the upstream with the identity of its entry', async () => {
  const gateway = await startGateway();
  const response = await gateway.fetch(PATH, { headers: CI_HEADERS });
  expect(response.status).toBe(200);
  expect(gateway.upstream.seen[0]?.headers).toMatchObject({ 'x-tenant-id': 'acme', 'x-svc-host-id': 'ci' });
});

test('static tokens are cached under host:token:<token>, and those removed from the config are deleted', async () => {
  const first = await startGateway();
  const entry = await first.services.store.cache.get('platform', `host:token:${CI_TOKEN}`);
  expect(entry).toMatchObject({ value: { hostId: 'ci', namespaceId: 'acme' }, expiresAt: null });
  const { dataDir } = first;
  await first.close();

  const second = await startGateway({ dataDir, gateway: { staticTokens: {} } });
  expect(await second.services.store.cache.get('platform', `host:token:${CI_TOKEN}`)).toBeUndefined();
  expect(await statusWith(second, CI_TOKEN)).toBe(401);
});

test('a static token is checked again after 30 s although the wall clock is set back an hour', async () => {
  const gateway = await startGateway();
  const { clock, services } = gateway;
  expect(await statusWith(gateway, CI_TOKEN)).toBe(200);
  await services.store.cache.delete('platform', `host:token:${CI_TOKEN}`);
  clock.jump(clock.now() - hours(1));
  clock.advance(seconds(30) - 1);
  expect(await statusWith(gateway, CI_TOKEN)).toBe(200);
  clock.advance(1);
  expect(await statusWith(gateway, CI_TOKEN)).toBe(401);
});

describe('a static token beyond ASCII', () => {
  const ENTRY = { hostId: 'ci', namespaceId: 'acme' };
  const withToken = (token: string) => startGateway({ gateway: { staticTokens: { [token]: ENTRY } } });
  const statusOf = async (gateway: TestGateway, bytes: Buffer): Promise<number> =>
    (await rawGet(gateway, PATH, [['authorization', `Bearer ${bytes.toString('latin1')}`]])).status;

  test.each(['clé-à', '日本語', '\u00a0edge'])('%j is read as UTF-8, as terminals send it', async (token) => {
    const gateway = await withToken(token);
    expect(await statusOf(gateway, Buffer.from(token))).toBe(200);
  });

  test('one byte per character, as browsers send it, is accepted too; other bytes match nothing', async () => {
    const gateway = await withToken('clé');
    expect(await statusOf(gateway, Buffer.from('clé', 'latin1'))).toBe(200);
    const marked = await withToken('a\ufffd');
    expect(await statusOf(marked, Buffer.from([0x61, 0xff]))).toBe(401);
    expect(await statusOf(marked, Buffer.from('a\ufffd'))).toBe(200);
  });
});

test.each(['a\nb', 'a\0b', '\u0085', '\ud800', 'x'.repeat(8193)])(
  'no header carries the static token %j: a fault of the config',
  (token) => {
    const staticTokens = { [token]: { hostId: 'ci', namespaceId: 'acme' } };
    const { error } = PlatformConfig.safeParse({ gateway: { staticTokens } });
    expect(error?.issues).toMatchObject([{ path: ['gateway', 'staticTokens', token] }]);
  },
);

test('an access token works until it expires, with five seconds of tolerance', async () => {
  const gateway = await startGateway();
  const token = await signJwt({}, { expiresIn: 60 });
  expect(await statusWith(gateway, token)).toBe(200);
  expect(gateway.upstream.seen[0]?.headers).toMatchObject({
    'x-tenant-id': 'acme',
    'x-svc-host-id': 'host-1',
  });
  gateway.clock.advance(seconds(60) + 4999);
  expect(await statusWith(gateway, token)).toBe(200);
  gateway.clock.advance(1);
  expect(await statusWith(gateway, token)).toBe(401);
});

test('a token of the specified claims alone is accepted: typ and jti are ours', async () => {
  const gateway = await startGateway();
  expect(await statusWith(gateway, await signJwt({ sub: 'host-1', typ: undefined }))).toBe(200);
  expect(gateway.upstream.seen[0]?.headers).toMatchObject({
    'x-tenant-id': 'acme',
    'x-svc-host-id': 'host-1',
  });
  const container = await signJwt({ hostId: 'container:e1', executionId: 'e1', typ: undefined });
  expect(await statusWith(gateway, container)).toBe(200);
  await expect(asBearer(gateway, container)(listClients, { query: {} })).rejects.toMatchObject({
    code: 'FORBIDDEN',
  });
});

test('a token that expires between two calls is refused although it is cached', async () => {
  const gateway = await startGateway();
  const token = await signJwt({}, { expiresIn: 10 });
  expect(await statusWith(gateway, token)).toBe(200);
  gateway.clock.advance(seconds(15));
  expect(await statusWith(gateway, token)).toBe(401);
});

test('the previous secret verifies and does not sign', async () => {
  const previous = 'the-secret-before-of-more-than-thirty-two-bytes';
  const gateway = await startGateway({ keys: { previousJwtSecret: previous } });
  expect(await statusWith(gateway, await signJwt({}, { secret: previous }))).toBe(200);
  const { clientId, clientSecret } = TEST_OPERATOR;
  const { accessToken } = await gateway.call(exchangeToken, { body: { clientId, clientSecret } });
  const [head, body, signature] = accessToken.split('.');
  const expected = createHmac('sha256', TEST_KEYS.jwtSecret!).update(`${head}.${body}`).digest('base64url');
  expect(signature).toBe(expected);
});

describe('GATEWAY_JWT_SECRET', () => {
  test('development without it warns and works', async () => {
    const gateway = await startGateway({ keys: { jwtSecret: null } });
    expect(gateway.logs.lines).toContainEqual(
      expect.objectContaining({
        event: 'auth.insecure_secret',
        level: 'warn',
        reasonCode: 'JWT_SECRET_MISSING',
      }),
    );
    expect((await gateway.fetch(PATH, { headers: CI_HEADERS })).status).toBe(200);
  });

  test.each([
    ['none', null],
    ['one of 31 bytes', 'x'.repeat(31)],
  ])('production refuses %s', async (_name, jwtSecret) => {
    await expect(startGateway({ profile: 'production', keys: { jwtSecret } })).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      message: expect.stringContaining('set GATEWAY_JWT_SECRET'),
      details: { variable: 'GATEWAY_JWT_SECRET', minBytes: 32 },
    });
  });

  test('production refuses the generated one of keys.json; development warns and works', async () => {
    const keys = { jwtSecret: 'x'.repeat(43), isJwtSecretGenerated: true };
    await expect(startGateway({ profile: 'production', keys })).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      message: expect.stringContaining('svc init --production'),
    });
    const gateway = await startGateway({ keys });
    expect(gateway.logs.lines).toContainEqual(
      expect.objectContaining({ level: 'warn', reasonCode: 'JWT_SECRET_GENERATED' }),
    );
    expect((await gateway.fetch(PATH, { headers: CI_HEADERS })).status).toBe(200);
  });

  test('production accepts a secret of 32 bytes', async () => {
    const gateway = await startGateway({ profile: 'production', keys: { jwtSecret: 'x'.repeat(32) } });
    expect((await gateway.fetch(PATH, { headers: CI_HEADERS })).status).toBe(200);
  });
});

test('the operator credentials of this machine are exchanged for valid tokens', async () => {
  const gateway = await startGateway();
  const { clientId, clientSecret } = TEST_OPERATOR;
  const pair = await gateway.call(exchangeToken, { body: { clientId, clientSecret } });
  expect(pair).toMatchObject({ expiresIn: 3600, tokenType: 'Bearer' });
  expect(await statusWith(gateway, pair.accessToken)).toBe(200);
  expect(gateway.upstream.seen[0]?.headers['x-svc-host-id']).toBe('operator');
});

test.each([
  ['an unknown client', { clientId: 'nobody', clientSecret: 'x' }],
  ['a wrong secret', { clientId: TEST_OPERATOR.clientId, clientSecret: 'x' }],
])('%s gets the same 401', async (_name, body) => {
  const gateway = await startGateway();
  const response = await gateway.fetch('/auth/token', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(401);
  expect(response.headers.get('www-authenticate')).toBe('Bearer');
  expect(await response.json()).toEqual({
    error: {
      code: 'UNAUTHORIZED',
      message: expect.stringMatching(/^These credentials are not valid/),
      details: {},
    },
  });
});

describe('a refresh token', () => {
  async function loggedIn() {
    const gateway = await startGateway();
    const { clientId, clientSecret } = TEST_OPERATOR;
    const pair = await gateway.call(exchangeToken, { body: { clientId, clientSecret } });
    const refresh = (token: string) => gateway.call(refreshToken, { body: { refreshToken: token } });
    return { gateway, pair, refresh };
  }

  test('rotates at each use', async () => {
    const { gateway, pair, refresh } = await loggedIn();
    const second = await refresh(pair.refreshToken);
    expect(second.refreshToken).not.toBe(pair.refreshToken);
    expect(await statusWith(gateway, second.accessToken)).toBe(200);
    await refresh(second.refreshToken);
  });

  test('may be repeated within ten seconds after a lost reply', async () => {
    const { gateway, pair, refresh } = await loggedIn();
    await refresh(pair.refreshToken);
    gateway.clock.advance(seconds(10) - 1);
    const again = await refresh(pair.refreshToken);
    await refresh(again.refreshToken);
  });

  test('reused after that revokes all tokens of its login', async () => {
    const { gateway, pair, refresh } = await loggedIn();
    const second = await refresh(pair.refreshToken);
    gateway.clock.advance(seconds(10));
    await expect(refresh(pair.refreshToken)).rejects.toThrow(/not valid/);
    await expect(refresh(second.refreshToken)).rejects.toThrow(/not valid/);
    expect(gateway.logs.lines).toContainEqual(
      expect.objectContaining({ event: 'auth.failed', reasonCode: 'REFRESH_TOKEN_REUSED' }),
    );
    expect(JSON.stringify(gateway.logs.lines)).not.toContain(pair.refreshToken);
  });

  test('reused, revokes the access tokens of its login at once, and no others', async () => {
    const { gateway, pair, refresh } = await loggedIn();
    const { clientId, clientSecret } = TEST_OPERATOR;
    const other = await gateway.call(exchangeToken, { body: { clientId, clientSecret } });
    const second = await refresh(pair.refreshToken);
    // Remembered by the gateway, as they were used.
    const ofLogin = [pair.accessToken, second.accessToken];
    for (const token of ofLogin) expect(await statusWith(gateway, token)).toBe(200);
    gateway.clock.advance(seconds(10));
    await expect(refresh(pair.refreshToken)).rejects.toThrow(/not valid/);
    for (const token of ofLogin) expect(await statusWith(gateway, token)).toBe(401);
    expect(await statusWith(gateway, other.accessToken)).toBe(200);
  });

  test('lasts 30 days', async () => {
    const { gateway, pair, refresh } = await loggedIn();
    gateway.clock.jump(gateway.clock.now() + 30 * 24 * 3600_000);
    await expect(refresh(pair.refreshToken)).rejects.toThrow(/not valid/);
  });

  test('is no access token', async () => {
    const { gateway, pair } = await loggedIn();
    expect(await statusWith(gateway, pair.refreshToken)).toBe(401);
  });
});

test.each([
  ['oauth:someone', 'access'],
  ['oauth:someone', undefined],
  ['anonymous', 'access'],
  ['container:e1', 'access'],
])('a genuine HS256 token with the reserved host id %s and type %s is refused', async (hostId, typ) => {
  const gateway = await startGateway();
  expect(await statusWith(gateway, await signJwt({ hostId, typ }))).toBe(401);
  expect(gateway.logs.lines).toContainEqual(expect.objectContaining({ reasonCode: 'JWT_CLAIMS_INVALID' }));
  expect(await statusWith(gateway, await signJwt({ hostId: 'host-1', typ }))).toBe(200);
});

/** @spec Authentication 13 */
describe('every failure is 401 in the error shape, with WWW-Authenticate and one diagnostic', () => {
  const now = Math.floor(Date.UTC(2030, 0, 1) / 1000);
  const claims = { hostId: 'host-1', namespaceId: 'acme', typ: 'access', exp: now + 60, iat: now };
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const unsigned = (header: object, payload: object): string => `${part(header)}.${part(payload)}.`;
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const bearer = (token: string): [string, string][] => [['authorization', `Bearer ${token}`]];

  const cases: Array<[string, () => Promise<[string, string][]> | [string, string][], string]> = [
    ['no header', () => [], 'MISSING_AUTHORIZATION'],
    ['an empty header', () => [['authorization', '']], 'MALFORMED_AUTHORIZATION'],
    ['another scheme', () => [['authorization', `Basic ${CI_TOKEN}`]], 'MALFORMED_AUTHORIZATION'],
    ['no scheme', () => [['authorization', CI_TOKEN]], 'MALFORMED_AUTHORIZATION'],
    ['a scheme alone', () => [['authorization', 'Bearer']], 'MALFORMED_AUTHORIZATION'],
    [
      'two spaces before the token',
      () => [['authorization', `Bearer  ${CI_TOKEN}`]],
      'MALFORMED_AUTHORIZATION',
    ],
    ['a tab after the scheme', () => [['authorization', `Bearer\t${CI_TOKEN}`]], 'MALFORMED_AUTHORIZATION'],
    ['a token of 9 KB', () => bearer('x'.repeat(9000)), 'MALFORMED_AUTHORIZATION'],
    ['two headers', () => [...bearer(CI_TOKEN), ...bearer(CI_TOKEN)], 'DUPLICATE_AUTHORIZATION'],
    ['an unknown token', () => bearer('never-issued'), 'UNKNOWN_TOKEN'],
    ['another case', () => bearer(CI_TOKEN.toUpperCase()), 'UNKNOWN_TOKEN'],
    ['something appended', () => bearer(`${CI_TOKEN}x`), 'UNKNOWN_TOKEN'],
    [
      'a wrong signature',
      async () => bearer(await signJwt({}, { secret: 'another-secret-of-thirty-two-bytes-' })),
      'JWT_SIGNATURE_INVALID',
    ],
    ['expired', async () => bearer(await signJwt({}, { expiresIn: -5 })), 'JWT_EXPIRED'],
    ['no exp', async () => bearer(await signJwt({}, { expiresIn: null })), 'JWT_CLAIMS_INVALID'],
    [
      'an exp that is text',
      async () => bearer(await signJwt({ exp: 'tomorrow' as never })),
      'JWT_CLAIMS_INVALID',
    ],
    ['a refresh typ', async () => bearer(await signJwt({ typ: 'refresh' })), 'JWT_CLAIMS_INVALID'],
    ['no hostId', async () => bearer(await signJwt({ hostId: undefined })), 'JWT_CLAIMS_INVALID'],
    [
      'a namespace that is no namespace',
      async () => bearer(await signJwt({ namespaceId: 'a\nb' })),
      'JWT_CLAIMS_INVALID',
    ],
    ['not valid yet', async () => bearer(await signJwt({ nbf: now + 60 })), 'JWT_NOT_ACTIVE'],
    ['alg none', () => bearer(unsigned({ alg: 'none' }, claims)), 'UNKNOWN_TOKEN'],
    ['alg none with a signature', () => bearer(`${unsigned({ alg: 'None' }, claims)}c2ln`), 'UNKNOWN_TOKEN'],
    [
      'RS256 by a key of their own',
      async () => bearer(await new SignJWT(claims).setProtectedHeader({ alg: 'RS256' }).sign(rsa.privateKey)),
      'UNKNOWN_TOKEN',
    ],
    [
      'HS512 with our secret',
      async () =>
        bearer(
          await new SignJWT(claims)
            .setProtectedHeader({ alg: 'HS512' })
            .sign(Buffer.from(TEST_KEYS.jwtSecret!)),
        ),
      'UNKNOWN_TOKEN',
    ],
    [
      'a kid that names a file',
      async () =>
        bearer(
          await signJwt({}, { secret: 'another-secret-of-thirty-two-bytes-', header: { kid: '/dev/null' } }),
        ),
      'JWT_SIGNATURE_INVALID',
    ],
    [
      'a key of their own in jwk',
      async () =>
        bearer(
          await signJwt(
            {},
            {
              secret: 'another-secret-of-thirty-two-bytes-',
              header: {
                jwk: {
                  kty: 'oct',
                  k: Buffer.from('another-secret-of-thirty-two-bytes-').toString('base64url'),
                },
              },
            },
          ),
        ),
      'JWT_SIGNATURE_INVALID',
    ],
    [
      'a JWT inside a JWT',
      async () =>
        bearer(`${part({ alg: 'HS256', cty: 'JWT' })}.${part(await signJwt({}))}.${'A'.repeat(43)}`),
      'JWT_SIGNATURE_INVALID',
    ],
    [
      'an unknown critical header',
      async () => {
        const head = part({ alg: 'HS256', crit: ['x'], x: 1 });
        const signed = `${head}.${part(claims)}`;
        return bearer(
          `${signed}.${createHmac('sha256', TEST_KEYS.jwtSecret!).update(signed).digest('base64url')}`,
        );
      },
      'UNKNOWN_TOKEN',
    ],
    [
      'a signature in another spelling of its bytes',
      async () => {
        const token = await signJwt({});
        const last = token.at(-1)!;
        const others = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'].filter(
          (letter) => letter !== last,
        );
        const bytes = (text: string): string => Buffer.from(text.split('.')[2]!, 'base64url').toString('hex');
        return bearer(
          others.map((letter) => token.slice(0, -1) + letter).find((other) => bytes(other) === bytes(token))!,
        );
      },
      'UNKNOWN_TOKEN',
    ],
    ['a signature with padding', async () => bearer(`${await signJwt({})}=`), 'UNKNOWN_TOKEN'],
    ['three dots of nothing', () => bearer('..'), 'UNKNOWN_TOKEN'],
  ];

  test.each(cases)('%s', async (_name, makeHeaders, reasonCode) => {
    const gateway = await startGateway();
    const headers = await makeHeaders();
    const { status, reply, body } = await rawGet(gateway, PATH, headers);
    expect(status).toBe(401);
    expect(reply['www-authenticate']).toBe('Bearer');
    expect(JSON.parse(body)).toEqual({
      error: { code: 'UNAUTHORIZED', message: expect.any(String), details: {} },
    });
    const events = gateway.logs.lines.filter(({ event }) => event === 'auth.failed');
    expect(events).toMatchObject([{ domain: 'auth', level: 'warn', reasonCode, outcome: 'refused' }]);
    for (const [, value] of headers) {
      const token = value.replace(/^Bearer\s*/, '');
      if (token.length > 6) expect(JSON.stringify(gateway.logs.lines)).not.toContain(token);
    }
    expect(gateway.upstream.seen).toEqual([]);
  });

  test('a token in the query', async () => {
    const gateway = await startGateway();
    const query = `?token=${CI_TOKEN}&access_token=${CI_TOKEN}&authorization=Bearer%20${CI_TOKEN}`;
    expect((await gateway.fetch(PATH + query)).status).toBe(401);
    expect(gateway.upstream.seen).toEqual([]);
  });
});

test('open paths need no token, and metrics are open only to this machine', async () => {
  const gateway = await startGateway();
  for (const path of ['/health', '/api/v1/health', '/openapi.json', '/docs', '/metrics']) {
    expect([path, (await gateway.fetch(path)).status]).toEqual([path, 200]);
  }
  const forwarded = { 'x-forwarded-for': '203.0.113.9' };
  expect((await gateway.fetch('/metrics', { headers: forwarded })).status).toBe(401);
  expect((await gateway.fetch('/metrics', { headers: { ...forwarded, ...CI_HEADERS } })).status).toBe(200);
});
