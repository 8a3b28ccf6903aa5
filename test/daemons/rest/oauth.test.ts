import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { expect, onTestFinished, test } from 'vitest';
import { asCaller, send, startRest, type TestRest } from './support.ts';

const ISSUER = 'https://login.example';

/** An issuer with its key set on loopback, and a service that trusts it. */
async function startWithIssuer(options: { mode?: string } = {}) {
  const [rs, es, other] = await Promise.all([
    generateKeyPair('RS256', { extractable: true }),
    generateKeyPair('ES256', { extractable: true }),
    generateKeyPair('RS256', { extractable: true }),
  ]);
  const keys: JWK[] = [
    { ...(await exportJWK(rs.publicKey)), kid: 'rs', alg: 'RS256' },
    { ...(await exportJWK(es.publicKey)), kid: 'es', alg: 'ES256' },
  ];
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const jwksUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
  const rest = await startRest({
    config: {
      rest: { oauth: { issuer: ISSUER, jwksUri, audience: 'shop', namespaceClaim: 'org' } },
      ...(options.mode ? { auth: { mode: options.mode } } : {}),
    },
  });
  const sign = (
    claims: Record<string, unknown> = {},
    key = rs.privateKey,
    header = { alg: 'RS256', kid: 'rs' },
  ) =>
    new SignJWT({ iss: ISSUER, aud: 'shop', sub: 'ada', org: 'acme', ...claims })
      .setProtectedHeader(header)
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(key);
  return { rest, server, sign, rs, es, other };
}

const call = (rest: TestRest, path: string, token: string) =>
  send(rest, 'GET', `/api/v1/plugins/shop${path}`, { headers: { authorization: `Bearer ${token}` } });

test.each(['optional', 'required'])(
  'with auth.mode %s, tokens of the issuer are its bearer',
  async (mode) => {
    const { rest, sign, es } = await startWithIssuer({ mode });
    for (const token of [await sign(), await sign({}, es.privateKey, { alg: 'ES256', kid: 'es' })]) {
      const { status, body } = await call(rest, '/for-oauth', token);
      expect([status, body]).toMatchObject([
        200,
        { user: { hostId: 'oauth:ada', namespaceId: 'acme' }, tenantId: 'acme' },
      ]);
    }
  },
);

test("what is not the issuer's own is 401", async () => {
  const { rest, sign, rs, other } = await startWithIssuer();
  const publicKey = new TextEncoder().encode(JSON.stringify(await exportJWK(rs.publicKey)));
  const hour = Math.floor(Date.now() / 1000) - 3600;
  const expired = await new SignJWT({ iss: ISSUER, aud: 'shop', sub: 'ada', org: 'acme' })
    .setProtectedHeader({ alg: 'RS256', kid: 'rs' })
    .setExpirationTime(hour)
    .sign(rs.privateKey);
  const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${(await sign()).split('.')[1]}.`;
  const wrong = {
    issuer: await sign({ iss: 'https://evil.example' }),
    audience: await sign({ aud: 'other' }),
    key: await sign({}, other.privateKey),
    'unknown key': await sign({}, other.privateKey, { alg: 'RS256', kid: 'new' }),
    namespace: await sign({ org: undefined }),
    'namespace of many': await sign({ org: ['a', 'b'] }),
    subject: await sign({ sub: undefined }),
    'public key as a secret': await sign({}, publicKey as never, { alg: 'HS256', kid: 'rs' }),
    expired,
    unsigned,
    nothing: 'x.y.z',
  };
  for (const [name, token] of Object.entries(wrong)) {
    const { status, body } = await call(rest, '/for-oauth', token);
    expect([status, body], name).toMatchObject([401, { error: { code: 'UNAUTHORIZED' } }]);
  }
});

test("other ways stay what they were, and the gateway's word needs no token", async () => {
  const { rest, sign } = await startWithIssuer();
  expect((await call(rest, '/open', await sign())).body).toMatchObject({ user: null });
  expect((await call(rest, '/for-tokens', await sign())).status).toBe(401);
  expect((await call(rest, '/for-both', await sign())).status).toBe(200);
  expect((await send(rest, 'GET', '/api/v1/plugins/shop/for-oauth')).status).toBe(401);
  const by = (hostId: string) =>
    send(rest, 'GET', '/api/v1/plugins/shop/for-oauth', { headers: asCaller(hostId) });
  expect((await by('ci')).status).toBe(403);
  expect((await by('oauth:ada')).status).toBe(200);
});

test('an issuer that cannot be asked is 502, not 401', async () => {
  const { rest, sign, server } = await startWithIssuer();
  await new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  expect(await call(rest, '/for-oauth', await sign())).toMatchObject({
    status: 502,
    body: { error: { code: 'UPSTREAM_UNAVAILABLE' } },
  });
});
