import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { expect, test } from 'vitest';
import { WebhookAuthConfig } from '../../src/contracts/index.ts';
import { type DeclaredAuth, TextCache, verificationOf } from '../../src/webhooks/schemes/index.ts';
import { atEnd } from '../support/at-end.ts';
import { keysOf, signedRequest } from '../support/signed-request.ts';

const NOW = Date.UTC(2030, 0, 1);
const SECONDS = NOW / 1000;
const SECRET = 'a-secret-of-more-than-thirty-two-bytes';

interface Issuer {
  url: string;
  /** Number of requests for the keys. */
  fetched(): number;
  answer(status: number, body: string): void;
  token(claims?: JWTPayload, header?: object): Promise<string>;
}

/** An issuer on loopback, which publishes one RSA key. */
async function startIssuer(): Promise<Issuer> {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true });
  let answer = {
    status: 200,
    body: JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'k1' }] }),
  };
  let fetched = 0;
  const server = createServer((_request, response) => {
    fetched++;
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => new Promise((resolve) => server.close(resolve)));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`,
    fetched: () => fetched,
    answer: (status, body) => {
      answer = { status, body };
    },
    token: (claims = {}, header = {}) =>
      new SignJWT({ iss: 'https://issuer.example', aud: 'hooks', exp: SECONDS + 300, ...claims })
        .setProtectedHeader({ alg: 'RS256', kid: 'k1', ...header })
        .sign(privateKey),
  };
}

const declare = (more: object): DeclaredAuth =>
  WebhookAuthConfig.parse({ type: 'jwt', ...more }) as DeclaredAuth;

function verify(auth: DeclaredAuth, token: string, { secret = SECRET, body = '{}', now = NOW } = {}) {
  const request = signedRequest({
    rawHeaders: ['Authorization', `Bearer ${token}`],
    body: Buffer.from(body),
  });
  return verificationOf(auth).verify(request, keysOf(secret), now, new TextCache());
}

test("a token of the issuer's key is accepted until it expires, with its claims only", async () => {
  const issuer = await startIssuer();
  const auth = declare({
    ...{ jwksUrl: issuer.url, issuer: 'https://issuer.example', audience: 'hooks' },
    claims: { email_verified: true },
  });
  const claims = { email_verified: true };
  const token = await issuer.token(claims);
  expect(await verify(auth, token)).toEqual({ valid: true, secret: 'current' });
  expect(await verify(auth, token, { now: NOW + 359_000 })).toMatchObject({ valid: true });
  expect(await verify(auth, token, { now: NOW + 361_000 })).toMatchObject({ fault: 'token_expired' });
  for (const wrong of [
    ...[{ iss: 'https://other.example' }, { aud: 'others' }, { email_verified: 'true' }, {}],
    ...[
      { ...claims, exp: undefined },
      { ...claims, nbf: SECONDS + 600 },
    ],
  ]) {
    const own = 'iss' in wrong || 'aud' in wrong ? { ...claims, ...wrong } : wrong;
    expect(await verify(auth, await issuer.token(own as JWTPayload)), JSON.stringify(wrong)).toMatchObject({
      fault: 'token_claim',
    });
  }
  const audience = declare({ jwksUrl: issuer.url, audience: 'secret' });
  expect(await verify(audience, token, { secret: 'hooks' })).toMatchObject({ valid: true });
  expect(await verify(audience, token, { secret: 'others' })).toMatchObject({ fault: 'token_claim' });
  expect(issuer.fetched()).toBe(1);
});

test('tokens of another key, without signature, and of a confused algorithm are refused', async () => {
  const issuer = await startIssuer();
  const other = await startIssuer();
  const auth = declare({ jwksUrl: issuer.url, audience: 'hooks' });
  expect(await verify(auth, await other.token())).toMatchObject({ fault: 'mismatch' });
  const [, payload] = (await issuer.token()).split('.');
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  for (const [header, fault] of [
    [{ alg: 'none' }, 'token_algorithm'],
    [{ alg: 'HS256', kid: 'k1' }, 'token_algorithm'],
    [{ alg: 'RS256', kid: 'k1', crit: ['x'], x: 1 }, 'token_malformed'],
  ] as const)
    expect(await verify(auth, `${encode(header)}.${payload}.AAAA`)).toMatchObject({ fault });
  for (const text of ['', 'a.b', 'a.b.c.d.e', `x${'y'.repeat(20_000)}`, '..'])
    expect((await verify(auth, text)).valid).toBe(false);
});

test('an unknown key id fetches the keys again, but not for every request', async () => {
  const issuer = await startIssuer();
  const auth = declare({ jwksUrl: issuer.url, audience: 'hooks' });
  const unknown = await issuer.token({}, { kid: 'invented' });
  for (let i = 0; i < 5; i++) expect(await verify(auth, unknown)).toMatchObject({ fault: 'mismatch' });
  expect(issuer.fetched()).toBe(1);
  for (let i = 0; i < 5; i++) await verify(auth, unknown, { now: NOW + 31_000 });
  expect(issuer.fetched()).toBe(2);
});

test('an unknown key id whose fetch fails leaves the known keys in use', async () => {
  const issuer = await startIssuer();
  const auth = declare({ jwksUrl: issuer.url, audience: 'hooks' });
  const [known, unknown] = [await issuer.token(), await issuer.token({}, { kid: 'invented' })];
  expect(await verify(auth, known)).toMatchObject({ valid: true });
  issuer.answer(500, 'no');
  const now = NOW + 31_000;
  await expect(verify(auth, unknown, { now })).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect(await verify(auth, known, { now })).toMatchObject({ valid: true });
  expect(issuer.fetched()).toBe(2);
});

test.each([
  ['an error', 500, 'no'],
  ['no JSON', 200, '<html>'],
  ['no keys', 200, '{"keys":1}'],
  ['too many bytes', 200, `{"keys":[],"x":"${'x'.repeat(300_000)}"}`],
  ['a redirect', 302, ''],
])('without keys (%s), the delivery is unavailable and not refused', async (_name, status, body) => {
  const issuer = await startIssuer();
  issuer.answer(status, body);
  const auth = declare({ jwksUrl: issuer.url, audience: 'hooks' });
  const token = await issuer.token();
  await expect(verify(auth, token)).rejects.toMatchObject({
    code: 'SERVICE_UNAVAILABLE',
    headers: { 'retry-after': expect.any(String) },
  });
  await expect(verify(auth, token)).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
  expect(issuer.fetched()).toBe(1);
});

test('an HMAC token covers the body by its digest, and samples are signed alike', async () => {
  const auth = declare({
    ...{ algorithms: ['HS256'], issuer: 'netlify', requireExpiry: false },
    bodyDigest: { claim: 'sha256', encoding: 'hex' },
  });
  const digest = createHash('sha256').update('{}').digest('hex');
  const token = await new SignJWT({ iss: 'netlify', sha256: digest })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(Buffer.from(SECRET));
  expect(await verify(auth, token)).toMatchObject({ valid: true });
  expect(await verify(auth, token, { body: '[]' })).toMatchObject({ fault: 'body_digest' });
  expect(await verify(auth, token, { secret: `${SECRET}!` })).toMatchObject({ fault: 'mismatch' });
  const [scheme] = verificationOf(auth).schemes;
  const draft = signedRequest();
  const signed = await scheme.sign!(keysOf(SECRET).current, draft);
  const request = { ...draft, rawHeaders: Object.entries(signed.headers).flat() };
  expect(await verificationOf(auth).verify(request, keysOf(SECRET), NOW, new TextCache())).toMatchObject({
    valid: true,
  });
});
