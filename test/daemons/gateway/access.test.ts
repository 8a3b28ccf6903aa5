import { describe, expect, test } from 'vitest';
import {
  createClientCredentials,
  exchangeToken,
  getHost,
  inviteHost,
  listClients,
  listHosts,
  listTokens,
  mintToken,
  refreshToken,
  registerHost,
  revokeClient,
  revokeHost,
  revokeToken,
} from '../../../src/contracts/index.ts';
import { createHostKeys } from '../../../src/kit/security/host-proof.ts';
import { minutes, seconds } from '../../../src/kit/time/duration.ts';
import { TEST_OPERATOR } from '../../support/daemon.ts';
import { asBearer, asOperator, statusWith } from './support/login.ts';
import { CI_TOKEN, signJwt, startGateway } from './support/start-gateway.ts';

const PUBLIC_KEY = Buffer.alloc(32, 9).toString('base64');
const MACHINE = {
  name: 'Build machine',
  publicKey: PUBLIC_KEY,
  capabilities: ['docker'],
  labels: { zone: 'eu' },
};

async function withHost() {
  const gateway = await startGateway();
  const operator = await asOperator(gateway);
  const { token } = await operator(inviteHost, { body: { namespaceId: 'acme' as never } });
  const host = await asBearer(gateway, token)(registerHost, { body: MACHINE });
  const { clientId, clientSecret } = host;
  const pair = await gateway.call(exchangeToken, { body: { clientId, clientSecret } });
  return { gateway, operator, host, pair };
}

describe('hosts', () => {
  test('an invited machine registers, logs in, and is listed for its namespace', async () => {
    const { gateway, operator, host, pair } = await withHost();
    expect(host.namespaceId).toBe('acme');
    expect(await statusWith(gateway, pair.accessToken)).toBe(200);
    expect(gateway.upstream.seen[0]?.headers).toMatchObject({
      'x-tenant-id': 'acme',
      'x-svc-host-id': host.hostId,
    });
    const listed = await asBearer(gateway, CI_TOKEN)(listHosts, { query: {} });
    expect(listed).toMatchObject({
      items: [
        {
          hostId: host.hostId,
          valid: true,
          status: 'offline',
          name: 'Build machine',
          labels: { zone: 'eu' },
        },
      ],
      nextCursor: null,
    });
    expect(JSON.stringify(listed)).not.toContain(PUBLIC_KEY);
    expect(await operator(listHosts, { query: {} })).toEqual(listed);
  });

  test('an enrolment token works once, for 15 minutes, and on no other path', async () => {
    const gateway = await startGateway();
    const operator = await asOperator(gateway);
    const { token, expiresAt } = await operator(inviteHost, { body: {} });
    expect(expiresAt).toBe(gateway.clock.now() + minutes(15));
    expect(await statusWith(gateway, token)).toBe(401);
    const register = asBearer(gateway, token);
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => register(registerHost, { body: MACHINE })));
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected']);

    const late = await operator(inviteHost, { body: {} });
    gateway.clock.advance(minutes(15));
    await expect(asBearer(gateway, late.token)(registerHost, { body: MACHINE })).rejects.toMatchObject({
      code: 'UNAUTHORIZED',
    });
  });

  test('a token of an administrator registers too; that of another caller is 403, a missing one 401', async () => {
    const gateway = await startGateway();
    const operator = await asOperator(gateway);
    expect(await operator(registerHost, { body: MACHINE })).toMatchObject({ namespaceId: 'default' });
    await expect(asBearer(gateway, CI_TOKEN)(registerHost, { body: MACHINE })).rejects.toMatchObject({
      code: 'FORBIDDEN',
    });
    await expect(gateway.call(registerHost, { body: MACHINE })).rejects.toMatchObject({
      code: 'UNAUTHORIZED',
    });
  });

  test.each(['', 'AAAA', `${PUBLIC_KEY}AAAA`, 'é'.repeat(44)])(
    'the public key %j is refused',
    async (publicKey) => {
      const gateway = await startGateway();
      const operator = await asOperator(gateway);
      await expect(operator(registerHost, { body: { ...MACHINE, publicKey } })).rejects.toMatchObject({
        code: 'VALIDATION_ERROR',
      });
    },
  );

  test('64 labels are accepted, 65 are refused', async () => {
    const gateway = await startGateway();
    const operator = await asOperator(gateway);
    const labels = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [i, 'x']));
    await operator(registerHost, { body: { ...MACHINE, labels: labels(64) } });
    await expect(operator(registerHost, { body: { ...MACHINE, labels: labels(65) } })).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { issues: [{ path: 'body.labels' }] },
    });
  });

  test('a host of another tenant looks absent', async () => {
    const { gateway, host } = await withHost();
    const stranger = asBearer(gateway, await signJwt({ namespaceId: 'other' }));
    await expect(stranger(getHost, { params: { hostId: host.hostId } })).rejects.toMatchObject({
      code: 'HOST_NOT_FOUND',
    });
    expect((await stranger(listHosts, { query: {} })).items).toEqual([]);
    await expect(stranger(listHosts, { query: { namespaceId: 'acme' as never } })).rejects.toMatchObject({
      code: 'FORBIDDEN',
    });
  });

  test('revoking a host ends its login, refresh token and unexpired access token at once, also after a restart', async () => {
    const { gateway, operator, host, pair } = await withHost();
    expect(await statusWith(gateway, pair.accessToken)).toBe(200);
    await operator(revokeHost, { params: { hostId: host.hostId } });
    expect(await statusWith(gateway, pair.accessToken)).toBe(401);
    const { clientId, clientSecret, hostId } = host;
    await expect(gateway.call(exchangeToken, { body: { clientId, clientSecret } })).rejects.toMatchObject({
      code: 'UNAUTHORIZED',
    });
    await expect(
      gateway.call(refreshToken, { body: { refreshToken: pair.refreshToken } }),
    ).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    expect(await operator(getHost, { params: { hostId } })).toMatchObject({
      valid: false,
      status: 'revoked',
    });
    expect(gateway.logs.lines).toContainEqual(
      expect.objectContaining({ event: 'auth.failed', reasonCode: 'TOKEN_REVOKED' }),
    );

    const { dataDir, clock } = gateway;
    await gateway.close();
    const restarted = await startGateway({ dataDir, clock });
    expect(await statusWith(restarted, pair.accessToken)).toBe(401);
  });

  test('no call passes after a confirmed revocation, however many are being verified', async () => {
    const { gateway, operator, host } = await withHost();
    const claims = { hostId: host.hostId };
    const tokens = await Promise.all(
      Array.from({ length: 60 }, (_, i) => signJwt({ ...claims, jti: `j${i}` })),
    );
    const racing = tokens.map((token) => statusWith(gateway, token));
    await operator(revokeHost, { params: { hostId: host.hostId } });
    await Promise.all(racing);
    const after = await Promise.all(tokens.map((token) => statusWith(gateway, token)));
    expect(new Set(after)).toEqual(new Set([401]));
  });

  test('only administrators revoke; an unknown host is 404', async () => {
    const { gateway, operator, host } = await withHost();
    const params = { hostId: host.hostId };
    await expect(asBearer(gateway, CI_TOKEN)(revokeHost, { params })).rejects.toMatchObject({
      code: 'FORBIDDEN',
    });
    await expect(operator(revokeHost, { params: { hostId: 'host_x' } })).rejects.toMatchObject({
      code: 'HOST_NOT_FOUND',
    });
  });
});

describe('clients', () => {
  test('are created, log in, and are refused once revoked', async () => {
    const gateway = await startGateway();
    const operator = await asOperator(gateway);
    const created = await operator(createClientCredentials, {
      body: { namespaceId: 'acme' as never, name: 'nightly' },
    });
    const { clientId, clientSecret } = created;
    const pair = await gateway.call(exchangeToken, { body: { clientId, clientSecret } });
    expect(await statusWith(gateway, pair.accessToken)).toBe(200);
    expect(gateway.upstream.seen[0]?.headers['x-tenant-id']).toBe('acme');

    await operator(revokeClient, { params: { clientId } });
    expect(await statusWith(gateway, pair.accessToken)).toBe(401);
    await expect(gateway.call(exchangeToken, { body: { clientId, clientSecret } })).rejects.toThrow(
      /not valid/,
    );
    const { items } = await operator(listClients, { query: { namespaceId: 'acme' as never } });
    expect(items).toMatchObject([{ clientId, name: 'nightly', valid: false }]);
    expect(JSON.stringify(items)).not.toContain('scrypt');
  });

  test('the credentials of the operator cannot be revoked, unknown ones are 404', async () => {
    const gateway = await startGateway();
    const operator = await asOperator(gateway);
    const revoke = (clientId: string) => operator(revokeClient, { params: { clientId } });
    await expect(revoke(TEST_OPERATOR.clientId)).rejects.toMatchObject({ code: 'CONFLICT' });
    await expect(revoke('client_x')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  test('replaced operator credentials are refused, and revoking them does not affect the current ones', async () => {
    const first = await startGateway();
    const { clientId, clientSecret } = TEST_OPERATOR;
    const former = await first.call(exchangeToken, { body: { clientId, clientSecret } });
    await first.close();
    const operator = { ...TEST_OPERATOR, clientId: 'client_operator_2', clientSecret: 'another-secret' };
    const gateway = await startGateway({ dataDir: first.dataDir, operator });
    const refused = { code: 'UNAUTHORIZED' };
    await expect(gateway.call(exchangeToken, { body: { clientId, clientSecret } })).rejects.toMatchObject(
      refused,
    );
    const { refreshToken: token } = former;
    await expect(gateway.call(refreshToken, { body: { refreshToken: token } })).rejects.toMatchObject(
      refused,
    );

    const logIn = () => gateway.call(exchangeToken, { body: operator });
    const { accessToken } = await logIn();
    await asBearer(gateway, accessToken)(revokeClient, { params: { clientId } });
    expect(await statusWith(gateway, accessToken)).toBe(200);
    await expect(logIn()).resolves.toMatchObject({ tokenType: 'Bearer' });
  });

  test('pages through the list', async () => {
    const gateway = await startGateway();
    const operator = await asOperator(gateway);
    for (const name of ['a', 'b', 'c']) await operator(createClientCredentials, { body: { name } });
    const names: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await operator(listClients, { query: { limit: 3, ...(cursor ? { cursor } : {}) } });
      names.push(...page.items.map(({ name }) => name));
      if (page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
    expect(names.sort()).toEqual(['a', 'b', 'c', 'operator']);
  });
});

describe('tokens by hand', () => {
  test('are minted, work until they expire or are revoked, and are listed without the token', async () => {
    const gateway = await startGateway();
    const operator = await asOperator(gateway);
    const body = { hostId: 'ci-2' as never, namespaceId: 'acme' as never, ttlSeconds: 90 };
    const minted = await operator(mintToken, { body });
    gateway.clock.advance(1);
    const other = await operator(mintToken, { body });
    expect(minted).toMatchObject({
      hostId: 'ci-2',
      namespaceId: 'acme',
      expiresAt: gateway.clock.now() - 1 + seconds(90),
    });
    expect(await statusWith(gateway, minted.token)).toBe(200);
    const { items } = await operator(listTokens, { query: {} });
    expect(items.map(({ jti }) => jti)).toEqual([other.jti, minted.jti]);
    expect(JSON.stringify(items)).not.toContain(minted.token);

    await operator(revokeToken, { params: { jti: minted.jti } });
    expect(await statusWith(gateway, minted.token)).toBe(401);
    expect(await statusWith(gateway, other.token)).toBe(200);
    // Within the tolerance of its expiry, and after other revocations made the gateway tidy up.
    // The tidying of the minute finds neither expired: it would race with the next call.
    for (const part of [61, 30]) gateway.clock.advance(seconds(part));
    await operator(revokeToken, { params: { jti: other.jti } });
    expect(await statusWith(gateway, minted.token)).toBe(401);
    gateway.clock.advance(seconds(4));
    expect(await statusWith(gateway, other.token)).toBe(401);
  });

  test.each([
    ['a synthetic host id', { hostId: 'container:1', ttlSeconds: 60 }],
    ['a line break in it', { hostId: 'a\r\nx-tenant-id: b', ttlSeconds: 60 }],
    ['no life time', { hostId: 'a', ttlSeconds: 0 }],
  ])('%s is refused', async (_name, body) => {
    const gateway = await startGateway();
    const operator = await asOperator(gateway);
    await expect(operator(mintToken, { body: body as never })).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
    });
  });

  test('only administrators mint, list clients and invite', async () => {
    const gateway = await startGateway();
    const ci = asBearer(gateway, CI_TOKEN);
    const forbidden = { code: 'FORBIDDEN' };
    await expect(ci(mintToken, { body: { hostId: 'operator' as never } })).rejects.toMatchObject(forbidden);
    await expect(ci(listClients, { query: {} })).rejects.toMatchObject(forbidden);
    await expect(ci(createClientCredentials, { body: { name: 'x' } })).rejects.toMatchObject(forbidden);
    await expect(ci(inviteHost, { body: {} })).rejects.toMatchObject(forbidden);
  });

  test("a container's token reaches upstreams and no administration", async () => {
    const gateway = await startGateway();
    const claims = { hostId: 'container:e1', typ: 'container', executionId: 'e1' };
    const token = await signJwt(claims);
    expect(await statusWith(gateway, token)).toBe(200);
    // Services must not take the container for a person with a role, for example in an approval.
    expect(gateway.upstream.seen[0]?.headers['x-svc-role']).toBe('none');
    await expect(asBearer(gateway, token)(listClients, { query: {} })).rejects.toMatchObject({
      code: 'FORBIDDEN',
    });
  });
});

test.each(['a\nb', 'a\u001b[31mb', 'a\u202eb', '\ud800', ''])('the name %j is none', async (name) => {
  const gateway = await startGateway();
  const operator = await asOperator(gateway);
  await expect(operator(createClientCredentials, { body: { name } })).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
    details: { issues: [expect.objectContaining({ path: 'body.name' })] },
  });
});

test.each(['/auth/token', '/auth/refresh', '/hosts/register'])(
  'at most 64 KiB of an unauthenticated request to %s are read',
  async (path) => {
    const gateway = await startGateway();
    const statusOf = async (bytes: number): Promise<number> => {
      const body = JSON.stringify('x'.repeat(bytes - 2));
      const headers = { 'content-type': 'application/json' };
      return (await gateway.fetch(path, { method: 'POST', headers, body })).status;
    };
    expect(await Promise.all([statusOf(65_536), statusOf(65_537)])).toEqual([400, 413]);
  },
);

describe('guessing', () => {
  const guess = (gateway: { call: Awaited<ReturnType<typeof startGateway>>['call'] }, clientId: string) =>
    gateway.call(exchangeToken, { body: { clientId, clientSecret: 'wrong' } }).catch((error) => error);

  test('ten failures a minute for a client, then 429 with Retry-After, though the secret be right', async () => {
    const gateway = await startGateway();
    const { clientId, clientSecret } = TEST_OPERATOR;
    const failures = await Promise.all(Array.from({ length: 12 }, () => guess(gateway, clientId)));
    expect(failures.map(({ code }) => code).sort()).toEqual([
      'RATE_LIMIT_EXCEEDED',
      'RATE_LIMIT_EXCEEDED',
      ...Array(10).fill('UNAUTHORIZED'),
    ]);
    const blocked = await gateway.fetch('/auth/token', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ clientId, clientSecret }),
    });
    expect(blocked.status).toBe(429);
    expect(Number(blocked.headers.get('retry-after'))).toBeGreaterThan(0);
    gateway.clock.advance(minutes(1));
    await gateway.call(exchangeToken, { body: { clientId, clientSecret } });
  });

  test('thirty failures per minute and address are allowed, whatever the client', async () => {
    const gateway = await startGateway();
    const codes = [];
    for (let i = 0; i < 32; i++) codes.push((await guess(gateway, `client-${i}`)).code);
    expect(codes.filter((code) => code === 'RATE_LIMIT_EXCEEDED')).toHaveLength(2);
  });

  test('refused credentials are logged with address and request, and for no tenant', async () => {
    const gateway = await startGateway();
    const { clientId } = TEST_OPERATOR;
    const post = (path: string, body: object) =>
      gateway.fetch(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const answers = [
      await post('/auth/token', { clientId, clientSecret: 'wrong' }),
      await post('/auth/refresh', { refreshToken: 'svcr_unknown' }),
      await post('/hosts/register', { name: 'a', publicKey: createHostKeys().publicKey }),
      await gateway.fetch('/hosts/connect'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 401]);
    const failures = gateway.logs.lines.filter(({ event }) => event === 'auth.failed');
    expect(failures.map(({ requestId }) => requestId)).toEqual(
      answers.map(({ headers }) => headers.get('x-request-id')),
    );
    for (const failure of failures) {
      expect(failure).toMatchObject({ traceId: expect.any(String), evidence: { ip: '127.0.0.1' } });
      expect(failure).not.toHaveProperty('tenantId');
    }
  });

  test('failed attempts from one address do not lock out another', async () => {
    const gateway = await startGateway({ gateway: { trustedProxies: ['127.0.0.1'] } });
    const { clientId, clientSecret } = TEST_OPERATOR;
    const login = async (address: string, secret: string) => {
      const { status } = await gateway.fetch('/auth/token', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
        body: JSON.stringify({ clientId, clientSecret: secret }),
      });
      return status;
    };
    for (let i = 0; i < 10; i++) expect(await login('192.0.2.1', 'wrong')).toBe(401);
    expect(await login('192.0.2.1', clientSecret)).toBe(429);
    expect(await login('192.0.2.2', clientSecret)).toBe(200);
  });

  test('repeated failures of one client do not use up the attempts of its address', async () => {
    const gateway = await startGateway();
    for (let i = 0; i < 40; i++) await guess(gateway, 'client-wrong');
    const { clientId, clientSecret } = TEST_OPERATOR;
    await expect(gateway.call(exchangeToken, { body: { clientId, clientSecret } })).resolves.toHaveProperty(
      'accessToken',
    );
  });

  test('successful logins do not count, however many run at once from one address', async () => {
    const gateway = await startGateway();
    const { clientId, clientSecret } = TEST_OPERATOR;
    const logIn = () => gateway.call(exchangeToken, { body: { clientId, clientSecret } });
    const pairs = await Promise.all(Array.from({ length: 40 }, logIn));
    const refreshed = await Promise.all(
      pairs.map(({ refreshToken: token }) => gateway.call(refreshToken, { body: { refreshToken: token } })),
    );
    expect(new Set(refreshed.map(({ accessToken }) => accessToken)).size).toBe(40);
  });
});
