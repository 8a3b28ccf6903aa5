import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { onTestFinished } from 'vitest';

const ISSUER = 'https://login.example';

type KeyPair = Awaited<ReturnType<typeof generateKeyPair>>;

export interface TestIssuer {
  /** The section of the config that trusts it: `rest.oauth`, `gateway.oauth`. */
  config: { issuer: string; jwksUri: string; audience: string; namespaceClaim: string };
  rs: KeyPair;
  es: KeyPair;
  /** Not published. */
  other: KeyPair;
  /** A token of `ada` in the namespace `acme`; `claims` replace, undefined leaves out. */
  sign(
    claims?: Record<string, unknown>,
    key?: unknown,
    header?: { alg: string; kid?: string },
  ): Promise<string>;
  /** How often its keys were asked for. */
  readonly asked: number;
  publish(key: JWK): void;
  withdraw(kid: string): void;
  /** What it answers instead of its keys; undefined: its keys. */
  answerWith(body: string | undefined): void;
  /** Nobody is there any more. */
  close(): Promise<void>;
}

/** An issuer with real keys, published on loopback. `now`: the clock of whoever verifies, epoch ms. */
export async function startIssuer(now: () => number = Date.now): Promise<TestIssuer> {
  const [rs, es, other] = await Promise.all([
    generateKeyPair('RS256', { extractable: true }),
    generateKeyPair('ES256', { extractable: true }),
    generateKeyPair('RS256', { extractable: true }),
  ]);
  let keys: JWK[] = [
    { ...(await exportJWK(rs.publicKey)), kid: 'rs', alg: 'RS256' },
    { ...(await exportJWK(es.publicKey)), kid: 'es', alg: 'ES256' },
  ];
  let asked = 0;
  let instead: string | undefined;
  const server = createServer((_request, response) => {
    asked++;
    response.setHeader('content-type', 'application/json').end(instead ?? JSON.stringify({ keys }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const jwksUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`;
  return {
    config: { issuer: ISSUER, jwksUri, audience: 'shop', namespaceClaim: 'org' },
    rs,
    es,
    other,
    sign(claims = {}, key = rs.privateKey, header = { alg: 'RS256', kid: 'rs' }) {
      const iat = Math.floor(now() / 1000);
      const all = { iss: ISSUER, aud: 'shop', sub: 'ada', org: 'acme', iat, exp: iat + 300, ...claims };
      return new SignJWT(all).setProtectedHeader(header).sign(key as CryptoKey);
    },
    get asked() {
      return asked;
    },
    publish: (key) => void keys.push(key),
    withdraw(kid) {
      keys = keys.filter((key) => key.kid !== kid);
    },
    answerWith(body) {
      instead = body;
    },
    async close() {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

/** Tokens that nobody may accept, by what is wrong with them. */
export async function badTokens({ sign, rs, other }: TestIssuer): Promise<Record<string, string>> {
  const publicKey = new TextEncoder().encode(JSON.stringify(await exportJWK(rs.publicKey)));
  const good = await sign();
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return {
    issuer: await sign({ iss: 'https://evil.example' }),
    audience: await sign({ aud: 'other' }),
    'no audience': await sign({ aud: undefined }),
    key: await sign({}, other.privateKey),
    'unknown key': await sign({}, other.privateKey, { alg: 'RS256', kid: 'new' }),
    namespace: await sign({ org: undefined }),
    'namespace of many': await sign({ org: ['a', 'b'] }),
    'namespace that is none': await sign({ org: 'a b' }),
    'no subject': await sign({ sub: undefined }),
    'empty subject': await sign({ sub: '' }),
    'subject that fits in no header': await sign({ sub: 'a\r\nx-svc-host-id: operator' }),
    'no expiry': await sign({ exp: undefined }),
    expired: await sign({ exp: Math.floor(Date.UTC(2020, 0, 1) / 1000) }),
    'not yet': await sign({ nbf: Math.floor(Date.UTC(2100, 0, 1) / 1000) }),
    'public key as a secret': await sign({}, publicKey, { alg: 'HS256', kid: 'rs' }),
    unsigned: `${part({ alg: 'none' })}.${good.split('.')[1]}.`,
    'other claims under the signature': `${good.split('.')[0]}.${part({ sub: 'eve' })}.${good.split('.')[2]}`,
    'a key of its own': await sign({}, other.privateKey, {
      alg: 'RS256',
      jwk: await exportJWK(other.publicKey),
    } as never),
    nothing: 'x.y.z',
  };
}
