import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exchangeToken } from '../../src/contracts/index.ts';
import { statusWith } from '../daemons/gateway/support/login.ts';
import { startGateway } from '../daemons/gateway/support/start-gateway.ts';
import { runCli } from '../support/cli.ts';
import { TEST_OPERATOR, tempDir } from '../support/daemon.ts';

/** A gateway, and `svc` as its operator from another machine. */
async function remote() {
  const gateway = await startGateway();
  const cwd = await tempDir();
  const { clientId, clientSecret } = TEST_OPERATOR;
  const { accessToken } = await gateway.call(exchangeToken, { body: { clientId, clientSecret } });
  const run = (args: string[]) =>
    runCli([...args, '--url', gateway.url, '--token', accessToken], { cwd, env: { PATH: process.env.PATH } });
  const result = async (...args: string[]) => {
    const { stdout } = await run([...args, '--json']);
    const envelope = JSON.parse(stdout);
    return envelope.ok ? envelope.result : envelope.error;
  };
  return { gateway, run, result };
}

test('tokens are minted, listed, inspected and revoked', async () => {
  const { gateway, run, result } = await remote();
  const minted = await result('tokens', 'mint', 'ci-2', '--namespace', 'acme', '--ttl-seconds', '60');
  expect(minted).toMatchObject({ hostId: 'ci-2', namespaceId: 'acme', token: expect.any(String) });
  expect(await statusWith(gateway, minted.token)).toBe(200);
  expect((await result('tokens', 'list')).items).toMatchObject([{ jti: minted.jti, revokedAt: null }]);
  expect(await result('tokens', 'inspect', minted.token)).toMatchObject({
    claims: { hostId: 'ci-2', typ: 'access', jti: minted.jti },
    expiresAt: minted.expiresAt,
  });
  const { stdout, stderr } = await run(['tokens', 'revoke', minted.jti]);
  expect([stdout, stderr]).toEqual(['Revoked. The token no longer works.\n', '']);
  expect(await statusWith(gateway, minted.token)).toBe(401);
  expect((await run(['tokens', 'list'])).stdout).toContain('revoked');
  expect(await result('tokens', 'revoke', 'nothing')).toMatchObject({ code: 'NOT_FOUND' });
  expect((await run(['tokens', 'inspect', 'opaque'])).code).toBe(2);
});

test('clients are created, listed and revoked', async () => {
  const { gateway, run, result } = await remote();
  const { clientId, clientSecret } = await result('clients', 'create', 'nightly', '--namespace', 'acme');
  await gateway.call(exchangeToken, { body: { clientId, clientSecret } });
  expect((await result('clients', 'list', '--namespace', 'acme')).items).toMatchObject([
    { clientId, valid: true },
  ]);
  await result('clients', 'revoke', clientId);
  expect((await run(['clients', 'list'])).stdout).toMatch(/nightly +acme +revoked/);
  await expect(gateway.call(exchangeToken, { body: { clientId, clientSecret } })).rejects.toThrow(
    /not valid/,
  );
});

test('hosts are invited, listed, shown and revoked', async () => {
  const { gateway, run, result } = await remote();
  expect((await run(['hosts', 'list'])).stdout).toContain('svc hosts invite');
  const { token } = await result('hosts', 'invite', '--namespace', 'acme');
  const registered = await gateway.fetch('/hosts/register', {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'machine', publicKey: Buffer.alloc(32, 1).toString('base64') }),
  });
  const { hostId } = (await registered.json()) as { hostId: string };
  expect((await result('host', 'list')).items).toMatchObject([{ hostId, status: 'offline' }]);
  expect(await result('hosts', 'show', hostId)).toMatchObject({ hostId, namespaceId: 'acme', valid: true });
  expect(await result('hosts', 'revoke', hostId)).toEqual({ revoked: true });
  expect((await run(['hosts', 'list'])).stdout).toContain('revoked');
});

test('an invalid namespace is a usage error', async () => {
  const { run } = await remote();
  const { code, stderr } = await run(['hosts', 'invite', '--namespace', 'no such']);
  expect([code, stderr]).toEqual([2, expect.stringContaining('--namespace must')]);
});

test('login stores tokens for a remote gateway, whoami uses and renews them, logout deletes them', async () => {
  const { gateway, result } = await remote();
  const { clientId, clientSecret, hostId } = await result(
    'clients',
    'create',
    'laptop',
    '--namespace',
    'acme',
  );
  const home = await tempDir();
  const env = { PATH: process.env.PATH, HOME: home };
  const svc = async (args: string[], stdin?: string) =>
    (await runCli([...args, '--url', gateway.url, '--json'], { cwd: home, env, stdin })).json;
  expect(await svc(['login', clientId], 'wrong')).toMatchObject({
    ok: false,
    error: { code: 'UNAUTHORIZED' },
  });
  expect(await svc(['login', clientId], `${clientSecret}\n`)).toMatchObject({
    ok: true,
    result: { clientId },
  });
  const file = join(home, '.config/svc/logins.json');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readFile(file, 'utf8')).not.toContain(clientSecret);
  const me = { hostId, namespaceId: 'acme', kind: 'access', admin: false };
  expect(await svc(['whoami'])).toMatchObject({ result: me });

  const logins = JSON.parse(await readFile(file, 'utf8'));
  logins[gateway.url].expiresAt = 0;
  await writeFile(file, JSON.stringify(logins));
  expect(await svc(['whoami'])).toMatchObject({ result: me });
  expect(JSON.parse(await readFile(file, 'utf8'))[gateway.url].refreshToken).not.toBe(
    logins[gateway.url].refreshToken,
  );

  expect(await svc(['logout'])).toMatchObject({ result: { removed: true } });
  expect(await svc(['whoami'])).toMatchObject({ ok: false, error: { code: 'UNAUTHORIZED' } });
});
