import { expect, test } from 'vitest';
import { badTokens, startIssuer } from '../../support/oauth-issuer.ts';
import { asCaller, send, startRest, type TestRest } from './support.ts';

/** A service that trusts a real issuer. */
async function startWithIssuer(options: { mode?: string } = {}) {
  let rest: TestRest | undefined;
  const issuer = await startIssuer(() => rest!.clock.now());
  rest = await startRest({
    config: { rest: { oauth: issuer.config }, ...(options.mode ? { auth: { mode: options.mode } } : {}) },
  });
  return { rest, issuer, sign: issuer.sign };
}

const call = (rest: TestRest, path: string, token: string) =>
  send(rest, 'GET', `/api/v1/plugins/shop${path}`, { headers: { authorization: `Bearer ${token}` } });

test.each(['optional', 'required'])(
  'with auth.mode %s, tokens of the issuer are its bearer',
  async (mode) => {
    const { rest, sign, issuer } = await startWithIssuer({ mode });
    for (const token of [await sign(), await sign({}, issuer.es.privateKey, { alg: 'ES256', kid: 'es' })]) {
      const { status, body } = await call(rest, '/for-oauth', token);
      expect([status, body]).toMatchObject([
        200,
        { user: { hostId: 'oauth:ada', namespaceId: 'acme' }, tenantId: 'acme' },
      ]);
    }
  },
);

test('a token not valid for the issuer is 401', async () => {
  const { rest, issuer } = await startWithIssuer();
  for (const [name, token] of Object.entries(await badTokens(issuer))) {
    const { status, body } = await call(rest, '/for-oauth', token);
    expect([status, body], name).toMatchObject([401, { error: { code: 'UNAUTHORIZED' } }]);
    const { event, reasonCode } = rest.logs.lines.filter(({ domain }) => domain === 'auth').at(-1)!;
    expect([event, reasonCode], name).toEqual(['auth.failed', expect.stringMatching(/^(JWT|UNKNOWN)_/)]);
  }
});

test('other authentication methods are unchanged, and gateway identity headers need no token', async () => {
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

test('a caller marked anonymous by the gateway reaches only routes that list `none`', async () => {
  const { rest } = await startWithIssuer();
  const by = (path: string) =>
    send(rest, 'GET', `/api/v1/plugins/shop${path}`, { headers: asCaller('anonymous') });
  expect((await by('/open')).body).toMatchObject({ user: null, tenantId: 'default' });
  for (const path of ['/orders', '/for-tokens', '/for-both']) expect((await by(path)).status).toBe(401);
});

test('an unreachable issuer is 502, not 401', async () => {
  const { rest, sign, issuer } = await startWithIssuer();
  await issuer.close();
  expect(await call(rest, '/for-oauth', await sign())).toMatchObject({
    status: 502,
    body: { error: { code: 'UPSTREAM_UNAVAILABLE' } },
  });
});
