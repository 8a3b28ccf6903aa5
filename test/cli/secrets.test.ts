import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { inBraces } from '../../src/daemons/workflow/domain/definition/templates.ts';
import type { AnyJson } from '../support/any-json.ts';
import { type TestPlatform, testPlatform } from './platform.ts';

const SLOW = { timeout: 200_000 };
const VALUE = 'Bearer the-value-of-default';

const definition = (port: number, path = '/', names = ['AUTH']): object => ({
  id: 'send',
  permissions: { secrets: names },
  jobs: {
    main: {
      steps: [
        {
          id: 'call',
          uses: 'http',
          retry: { maxAttempts: 1 },
          with: {
            url: `http://127.0.0.1:${port}${path}`,
            headers: { authorization: inBraces('secrets.AUTH') },
          },
        },
      ],
    },
  },
});

async function receiver() {
  const got: string[] = [];
  const server = createServer((request, response) => {
    got.push(`${request.url} ${request.headers.authorization}`);
    response.end('{}');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return { got, port: (server.address() as AddressInfo).port };
}

async function caller(platform: TestPlatform) {
  const { SVC_GATEWAY_URL: url, SVC_TOKEN: token } = (await platform.svc('status', '--env')).json.result.env;
  return async (method: string, path: string, body?: object, namespace = 'default'): Promise<AnyJson> => {
    const response = await fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'x-svc-namespace': namespace,
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return { status: response.status, ...((await response.json()) as object) };
  };
}

test('a definition uses secrets only as approved, in the namespace of its approval', SLOW, async () => {
  const { got, port } = await receiver();
  const platform = await testPlatform({ workflow: { port: 0, httpAllow: ['127.0.0.1'] } });
  const file = join(platform.folder, 'workflows', 'send.yaml');
  await mkdir(join(platform.folder, 'workflows'));
  const write = (...more: [string?, string[]?]) => writeFile(file, JSON.stringify(definition(port, ...more)));
  await write();
  expect((await platform.svc('up', '-d')).code).toBe(0);
  const call = await caller(platform);
  const end = async (start: AnyJson, namespace = 'default'): Promise<AnyJson> => {
    let run: AnyJson;
    await expect
      .poll(
        async () => {
          run = await call('GET', `/api/v1/workflows/runs/${start.run.id}`, undefined, namespace);
          return run.status;
        },
        { timeout: 30_000 },
      )
      .toMatch(/succeeded|failed/);
    return run;
  };
  const start = (namespace = 'default') =>
    call('POST', '/api/v1/workflows/runs', { workflowId: 'send' }, namespace);
  const approve = async (namespace = 'default') => {
    const { items } = await call('GET', '/api/v1/workflows', undefined, namespace);
    const { hash } = items.find(({ id }: AnyJson) => id === 'send');
    return call('POST', '/api/v1/workflows/send/approve-secrets', { hash }, namespace);
  };

  // Not approved, approved without a value, and approved.
  const first = await start();
  expect(JSON.stringify(await end(first))).toContain('PERMISSION_DENIED');
  expect(await approve()).toMatchObject({ status: 200, approved: true, names: ['AUTH'] });
  expect(JSON.stringify(await end(await start()))).toContain('svc secrets set AUTH --tenant default');
  expect((await call('PUT', '/api/v1/secrets/AUTH', { value: VALUE })).status).toBe(200);
  const used = await end(await start());
  expect(used.status).toBe('succeeded');
  expect(got).toEqual([`/ ${VALUE}`]);
  expect(JSON.stringify(used)).not.toContain('the-value-of-default');
  expect((await call('GET', '/api/v1/secrets')).items[0].lastUsedAt).toEqual(expect.any(Number));

  // The approval and the secret of one tenant are none of another.
  expect(JSON.stringify(await end(await start('acme'), 'acme'))).toContain('PERMISSION_DENIED');
  expect((await approve('acme')).approved).toBe(true);
  expect(JSON.stringify(await end(await start('acme'), 'acme'))).toContain('--tenant acme');
  expect((await call('GET', '/api/v1/secrets', undefined, 'acme')).items).toEqual([]);
  expect((await call('DELETE', '/api/v1/secrets/AUTH', undefined, 'acme')).error.code).toBe('NOT_FOUND');

  // Definitions that are sent with a run get none, also the approved text.
  for (const sent of [definition(port), definition(port, '/other')])
    expect(await call('POST', '/api/v1/workflows/runs', { definition: sent })).toMatchObject({
      status: 400,
      error: { code: 'VALIDATION_ERROR', message: expect.stringContaining('cannot use secrets') },
    });

  // A changed definition needs a new approval; reruns of the approved text still work.
  await write('/changed');
  await platform.svc('restart', 'workflow');
  await expect
    .poll(async () => (await call('GET', '/api/v1/workflows')).items?.[0]?.secrets?.approved, {
      timeout: 30_000,
    })
    .toBe(false);
  expect((await end(await start())).status).toBe('failed');
  const again = await call('POST', `/api/v1/workflows/runs/${used.id}/rerun`, {});
  await end(again);
  expect(got.filter((request) => request.startsWith('/changed'))).toEqual([]);
  expect((await call('POST', '/api/v1/workflows/send/approve-secrets', { hash: 'stale' })).error.code).toBe(
    'CONFLICT',
  );
  expect((await approve()).approved).toBe(true);
  expect((await end(await start())).status).toBe('succeeded');

  // A revoked secret is gone at once.
  expect((await platform.svc('secrets', 'revoke', 'AUTH', '--yes')).code).toBe(0);
  expect((await end(await start())).status).toBe('failed');
  const audit = JSON.stringify((await call('GET', '/api/v1/audit?limit=100')).items);
  for (const action of ['secret.set', 'secret.revoke', 'workflow.approve_secrets'])
    expect(audit).toContain(action);
  expect(audit).not.toContain('the-value-of-default');
});

test('names and values out of bounds are refused without showing them', SLOW, async () => {
  const platform = await testPlatform();
  expect((await platform.svc('up', '-d')).code).toBe(0);
  const call = await caller(platform);
  for (const value of [
    'abc-xyz',
    ' '.repeat(20),
    'x'.repeat(64 * 1024 + 1),
    'with\0nul-character',
    12345678,
    null,
  ]) {
    const answer = await call('PUT', '/api/v1/secrets/NAME', { value });
    expect([answer.status, answer.error.code]).toEqual([400, 'VALIDATION_ERROR']);
    if (typeof value === 'string' && value.trim() !== '') expect(JSON.stringify(answer)).not.toContain(value);
  }
  for (const name of ['__proto__', 'constructor', 'lower', 'A-B', 'A'.repeat(65), '1A'])
    expect((await call('PUT', `/api/v1/secrets/${name}`, { value: 'a good value' })).status).toBe(400);
  const largest = '🔑'.repeat(16 * 1024);
  expect(await call('PUT', '/api/v1/secrets/NAME', { value: largest })).toMatchObject({
    status: 200,
    version: 1,
  });
  expect(await call('PUT', '/api/v1/secrets/NAME', { value: 'password' })).toMatchObject({ version: 2 });
  expect((await call('GET', '/api/v1/secrets')).items[0].versions).toHaveLength(2);
  expect((await call('POST', '/internal/secrets/resolve', { names: ['NAME'] })).status).toBe(401);
});
