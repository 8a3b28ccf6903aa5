import { scryptSync } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { createClientCredentials } from '../../../src/contracts/index.ts';
import { TEST_OPERATOR } from '../../support/daemon.ts';
import { asOperator } from './support/login.ts';
import { startGateway, type TestGateway } from './support/start-gateway.ts';

async function exchangeStatus(gateway: TestGateway, clientId: string, clientSecret: string): Promise<number> {
  const response = await gateway.fetch('/auth/token', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ clientId, clientSecret }),
  });
  return response.status;
}

/** As releases before the SHA-256 stored it. */
function formerHash(secret: string): string {
  const salt = Buffer.alloc(16, 1);
  const key = scryptSync(secret, salt, 32, { N: 16384, r: 8, p: 1 });
  return ['scrypt', 16384, 8, 1, salt.toString('base64url'), key.toString('base64url')].join('$');
}

test.each([
  ['a NUL byte', '\0'],
  ['several NUL bytes', '\0'.repeat(5)],
  ['a blank', ' '],
])('a client secret with %s appended is refused', async (_name, suffix) => {
  const gateway = await startGateway();
  const { clientId, clientSecret } = await (await asOperator(gateway))(createClientCredentials, {
    body: { namespaceId: 'acme', name: 'ci' },
  });
  expect(await exchangeStatus(gateway, clientId, clientSecret + suffix)).toBe(401);
  expect(await exchangeStatus(gateway, clientId, clientSecret)).toBe(200);
  const operator = TEST_OPERATOR;
  expect(await exchangeStatus(gateway, operator.clientId, operator.clientSecret + suffix)).toBe(401);
});

test('a hash of the previous scheme accepts the exact secret, and is replaced when used', async () => {
  const gateway = await startGateway();
  const { clients } = gateway.services.store;
  const secretHash = formerHash('a-former-secret');
  const identity = { clientId: 'client_former', hostId: 'former', namespaceId: 'acme', name: 'former' };
  await clients.create({ ...identity, secretHash, createdAt: 0, revokedAt: null });

  expect(await exchangeStatus(gateway, 'client_former', 'a-former-secret\0')).toBe(401);
  expect((await clients.find('client_former'))?.secretHash).toBe(secretHash);

  expect(await exchangeStatus(gateway, 'client_former', 'a-former-secret')).toBe(200);
  expect((await clients.find('client_former'))?.secretHash).toMatch(/^scrypt-sha256\$/);
  expect(await exchangeStatus(gateway, 'client_former', 'a-former-secret')).toBe(200);
  expect(await exchangeStatus(gateway, 'client_former', 'a-former-secret\0')).toBe(401);
});

test("a start replaces the operator's hash of the former scheme", async () => {
  const first = await startGateway();
  const { dataDir } = first;
  const { clientId, clientSecret } = TEST_OPERATOR;
  const { clients } = first.services.store;
  const known = await clients.find(clientId);
  await clients.upsert({ ...known!, secretHash: formerHash(clientSecret) });
  await first.close();
  const second = await startGateway({ dataDir });
  expect((await second.services.store.clients.find(clientId))?.secretHash).toMatch(/^scrypt-sha256\$/);
});

test('secrets are hashed at the cost that OWASP recommends', async () => {
  const { SECRET_COST } = await vi.importActual<
    typeof import('../../../src/daemons/gateway/domain/identity/secret-cost.ts')
  >('../../../src/daemons/gateway/domain/identity/secret-cost.ts');
  expect(SECRET_COST).toEqual({ N: 2 ** 14, r: 8, p: 1 });
});
