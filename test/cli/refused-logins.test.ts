import { expect, test } from 'vitest';
import { testPlatform, withStandIns } from './platform.ts';

const TENANT_TOKEN = 'a-static-token-of-a-tenant';

test('an administrator finds refused authentications in the log, a tenant does not', {
  timeout: 90_000,
}, async () => {
  const staticTokens = { [TENANT_TOKEN]: { hostId: 'ci', namespaceId: 'acme' } };
  const { svc } = await testPlatform(
    ...withStandIns({ config: { gateway: { port: 0, staticTokens } }, real: ['rest', 'gateway'] }),
  );
  expect((await svc('up', '-d')).json.ok).toBe(true);
  const { SVC_GATEWAY_URL: url, SVC_TOKEN: admin } = (await svc('status', '--env')).json.result.env;

  const refusedWith = async (path: string, requestId: string, init: RequestInit) => {
    const headers = { 'content-type': 'application/json', 'x-request-id': requestId, ...init.headers };
    const { status } = await fetch(url + path, { ...init, headers });
    expect([requestId, status]).toEqual([requestId, 401]);
  };
  const wrong = JSON.stringify({ clientId: 'client_nobody', clientSecret: 'guess' });
  await refusedWith('/auth/token', 'refused-client', { method: 'POST', body: wrong });
  const stale = JSON.stringify({ refreshToken: 'guess' });
  await refusedWith('/auth/refresh', 'refused-refresh', { method: 'POST', body: stale });
  // The tenant that a caller claims is not believed before the caller is.
  const claims = { authorization: 'Bearer guess', 'x-svc-namespace': 'acme', 'x-tenant-id': 'acme' };
  await refusedWith('/api/v1/jobs/1', 'refused-token', { headers: claims });

  const found = async (token: string, requestId: string) => {
    const asked = await fetch(`${url}/api/v1/logs?requestId=${requestId}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(asked.status).toBe(200);
    const { items } = (await asked.json()) as { items: Array<Record<string, unknown>> };
    return items.filter(({ reasonCode }) => reasonCode !== undefined);
  };
  const expected = {
    'refused-client': 'CLIENT_CREDENTIALS_INVALID',
    'refused-refresh': 'REFRESH_TOKEN_UNKNOWN',
    'refused-token': 'UNKNOWN_TOKEN',
  };
  for (const [requestId, reasonCode] of Object.entries(expected)) {
    await expect.poll(() => found(admin, requestId), { timeout: 20_000 }).toHaveLength(1);
    const [record] = await found(admin, requestId);
    expect(record).toMatchObject({ reasonCode, outcome: 'refused', evidence: { ip: '127.0.0.1' } });
    expect(record?.tenantId ?? '').toBe('');
    expect(await found(TENANT_TOKEN, requestId)).toEqual([]);
  }
});
