import { exportJWK } from 'jose';
import { expect, test } from 'vitest';
import { PlatformConfig, whoAmI } from '../../../src/contracts/index.ts';
import { createPeers } from '../../../src/daemons/peers.ts';
import { minutes, seconds } from '../../../src/kit/time/duration.ts';
import { ADMIN_TOKEN, MEMBER_TOKEN, startGateway, type TestGateway } from '../../support/gateway.ts';
import { badTokens, startIssuer, type TestIssuer } from '../../support/oauth-issuer.ts';
import { REST_PROJECT, startRest } from '../rest/support.ts';

/** The real gateway before the real REST API; only the gateway trusts the issuer, and REST trusts nobody else. */
async function startBoth(gatewayConfig: Record<string, unknown> = {}) {
  let gateway: TestGateway | undefined;
  const issuer = await startIssuer(() => gateway!.clock.now());
  const rest = await startRest({ config: { auth: { mode: 'required' } } });
  gateway = await startGateway({
    projectDir: REST_PROJECT,
    peers: createPeers({ rest: rest.url }),
    config: { plugins: ['./plugins/shop'], gateway: { oauth: issuer.config, ...gatewayConfig } },
  });
  return { gateway, issuer, rest };
}

async function get(gateway: TestGateway, path: string, token?: string) {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await gateway.fetch(`/api/v1/plugins/shop${path}`, { headers });
  return { status: response.status, headers: response.headers, body: (await response.json()) as never };
}

function reasons({ logs }: TestGateway): unknown[] {
  return logs.lines.filter(({ event }) => event === 'auth.failed').map(({ reasonCode }) => reasonCode);
}

test('a token of the issuer identifies its bearer, from the gateway to the handler', async () => {
  const { gateway, issuer } = await startBoth();
  const { sign } = issuer;
  const es = await sign({}, issuer.es.privateKey, { alg: 'ES256', kid: 'es' });
  for (const token of [await sign(), es]) {
    expect(await get(gateway, '/for-oauth', token)).toMatchObject({
      status: 200,
      body: { user: { hostId: 'oauth:ada', namespaceId: 'acme' }, tenantId: 'acme' },
    });
  }
  expect((await get(gateway, '/for-users', await sign())).status).toBe(200);
  expect((await get(gateway, '/for-oauth', MEMBER_TOKEN)).status).toBe(403);
  expect((await get(gateway, '/for-both', MEMBER_TOKEN)).status).toBe(200);
  expect(issuer.asked).toBe(1);
});

test('a token not valid for the issuer is 401 with one diagnostic', async () => {
  const { gateway, issuer } = await startBoth();
  const bad = Object.entries(await badTokens(issuer));
  for (const [name, token] of bad) {
    const { status, headers, body } = await get(gateway, '/for-oauth', token);
    expect([status, headers.get('www-authenticate'), body], name).toMatchObject([
      401,
      'Bearer',
      { error: { code: 'UNAUTHORIZED' } },
    ]);
  }
  expect(reasons(gateway)).toHaveLength(bad.length);
  expect(new Set(reasons(gateway))).toEqual(
    new Set([
      'UNKNOWN_TOKEN',
      'JWT_CLAIMS_INVALID',
      'JWT_SIGNATURE_INVALID',
      'JWT_KEY_UNKNOWN',
      'JWT_EXPIRED',
      'JWT_NOT_ACTIVE',
    ]),
  );
  expect(JSON.stringify(gateway.logs.lines)).not.toContain(bad[0]![1]);
});

test('without gateway.oauth such a token is unknown', async () => {
  const { gateway, issuer } = await startBoth({ oauth: null });
  expect((await get(gateway, '/for-oauth', await issuer.sign())).status).toBe(401);
  expect(issuer.asked).toBe(0);
});

test('access ends when the token expires, and its bearer gets no admin rights', async () => {
  const { gateway, issuer } = await startBoth();
  const token = await issuer.sign();
  expect(await gateway.call(whoAmI, {}, token)).toMatchObject({
    hostId: 'oauth:ada',
    kind: 'oauth',
    admin: false,
  });
  const other = await gateway.fetch('/api/v1/webhooks', {
    headers: { authorization: `Bearer ${token}`, 'x-svc-namespace': 'default' },
  });
  expect(other.status).toBe(403);
  gateway.clock.advance(seconds(304));
  expect((await get(gateway, '/for-oauth', token)).status).toBe(200);
  gateway.clock.advance(seconds(1));
  expect((await get(gateway, '/for-oauth', token)).status).toBe(401);
  expect(reasons(gateway)).toEqual(['JWT_EXPIRED']);
});

test('reserved host ids cannot be assigned', async () => {
  for (const hostId of ['oauth:ada', 'container:e1', 'anonymous']) {
    const entry = { hostId, namespaceId: 'default' };
    expect(PlatformConfig.safeParse({ gateway: { admins: [hostId] } }).success).toBe(false);
    expect(PlatformConfig.safeParse({ gateway: { staticTokens: { token: entry } } }).success).toBe(false);
  }
  const gateway = await startGateway();
  for (const hostId of ['oauth:ada', 'container:e1', 'anonymous', 'a\u0007b', 'ü']) {
    const response = await gateway.fetch('/api/v1/tokens', {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ hostId }),
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'VALIDATION_ERROR' } });
  }
});

test('key URLs without TLS and an empty audience are config faults', () => {
  const oauth = { issuer: 'https://a.example', audience: 'b', namespaceClaim: 'c' };
  const check = (part: object): boolean =>
    PlatformConfig.safeParse({ gateway: { oauth: { ...oauth, jwksUri: 'https://a.example/keys', ...part } } })
      .success;
  expect(check({})).toBe(true);
  expect(check({ jwksUri: 'http://127.0.0.1:9/keys' })).toBe(true);
  expect(check({ jwksUri: 'http://a.example/keys' })).toBe(false);
  expect(check({ jwksUri: 'http://localhost.evil.example/keys' })).toBe(false);
  expect(check({ audience: '' })).toBe(false);
});

/** A key that the issuer has not published yet. */
async function newKey({ other }: TestIssuer) {
  return { ...(await exportJWK(other.publicKey)), kid: 'new', alg: 'RS256' };
}

test('a flood of unknown keys queries the issuer once in thirty seconds, which finds a new key', async () => {
  const { gateway, issuer } = await startBoth();
  const sign = (kid: string) => issuer.sign({}, issuer.other.privateKey, { alg: 'RS256', kid });
  await get(gateway, '/for-oauth', await issuer.sign());
  for (let i = 0; i < 50; i++) await get(gateway, '/for-oauth', await sign(`made-up-${i}`));
  expect(issuer.asked).toBe(1);
  issuer.publish(await newKey(issuer));
  expect((await get(gateway, '/for-oauth', await sign('new'))).status).toBe(401);
  gateway.clock.advance(seconds(30));
  expect((await get(gateway, '/for-oauth', await sign('new'))).status).toBe(200);
  expect(issuer.asked).toBe(2);
});

test.each([0, 9.5])(
  'a key withdrawn by the issuer is dropped after eleven minutes, also for tokens seen after %d',
  async (seenAfter) => {
    const { gateway, issuer } = await startBoth();
    const token = await issuer.sign({ exp: Math.floor(gateway.clock.now() / 1000) + 7200 });
    const status = async () => (await get(gateway, '/for-oauth', token)).status;
    expect(await status()).toBe(200);
    issuer.withdraw('rs');
    gateway.clock.advance(minutes(seenAfter));
    // The known keys serve while the new ones are on their way.
    expect(await status()).toBe(200);
    gateway.clock.advance(minutes(11 - seenAfter));
    expect(await status()).toBe(401);
  },
);

test('after an idle hour the keys are fetched before they are used', async () => {
  const { gateway, issuer } = await startBoth();
  const token = await issuer.sign({ exp: Math.floor(gateway.clock.now() / 1000) + 7200 });
  await get(gateway, '/for-oauth', await issuer.sign());
  issuer.withdraw('rs');
  gateway.clock.advance(minutes(60));
  const answers = await Promise.all([1, 2, 3].map(() => get(gateway, '/for-oauth', token)));
  expect([answers.map(({ status }) => status), issuer.asked]).toEqual([[401, 401, 401], 2]);
});

test('cached keys of an unreachable issuer work for seventy minutes, then 502 and one retry in five seconds', async () => {
  const { gateway, issuer } = await startBoth();
  await get(gateway, '/for-oauth', await issuer.sign());
  issuer.answerWith('{"keys":"none"}');
  gateway.clock.advance(minutes(69));
  expect((await get(gateway, '/for-oauth', await issuer.sign())).status).toBe(200);
  await expect.poll(() => issuer.asked).toBe(2);
  gateway.clock.advance(minutes(1));
  for (let i = 0; i < 10; i++) {
    expect(await get(gateway, '/for-oauth', await issuer.sign())).toMatchObject({
      status: 502,
      body: { error: { code: 'UPSTREAM_UNAVAILABLE' } },
    });
  }
  expect(issuer.asked).toBe(3);
  expect((await get(gateway, '/for-oauth', 'x.y.z')).status).toBe(401);
  issuer.answerWith(undefined);
  gateway.clock.advance(seconds(5));
  expect((await get(gateway, '/for-oauth', await issuer.sign())).status).toBe(200);
});

test.each([
  ['no JSON', '<html>'],
  ['too much', JSON.stringify({ keys: [], filler: 'x'.repeat(300_000) })],
  ['too many keys', JSON.stringify({ keys: Array(101).fill({ kty: 'RSA' }) })],
])('an issuer that answers %s has no keys', async (_what, body) => {
  const { gateway, issuer } = await startBoth();
  issuer.answerWith(body);
  expect((await get(gateway, '/for-oauth', await issuer.sign())).status).toBe(502);
  expect(gateway.logs.lines).toContainEqual(
    expect.objectContaining({ reasonCode: 'ISSUER_KEYS_UNAVAILABLE', outcome: 'degraded' }),
  );
});
