import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { testPlatform } from './platform.ts';

/** One of each kind of secret that a platform may be given. */
const PLANTED = {
  jwt: 'planted-jwt-secret-that-is-long-enough-1234',
  previousJwt: 'planted-previous-jwt-secret-long-enough-12',
  internal: 'planted-internal-secret-that-is-long-enough',
  staticToken: 'planted-static-token',
  pluginSetting: 'planted plugin password',
  pluginPlain: 'planted-setting-of-a-harmless-name',
  foreignVariable: 'planted-cloud-secret-key',
  ownToken: 'planted-token-of-the-caller',
};

test('a report has the data of a bug report, and no secret of this machine', {
  timeout: 90_000,
}, async () => {
  const { svc, folder, dataDir, service } = await testPlatform(
    {
      gateway: {
        port: 0,
        staticTokens: { [PLANTED.staticToken]: { hostId: 'ci', namespaceId: 'default' } },
      },
      pluginConfig: { inbox: { password: PLANTED.pluginSetting, note: PLANTED.pluginPlain } },
    },
    {
      GATEWAY_JWT_SECRET: PLANTED.jwt,
      GATEWAY_JWT_SECRET_PREVIOUS: PLANTED.previousJwt,
      AWS_SECRET_ACCESS_KEY: PLANTED.foreignVariable,
    },
  );
  await writeFile(join(folder, '.env'), `GATEWAY_INTERNAL_SECRET=${PLANTED.internal}\n`, { mode: 0o600 });
  await mkdir(join(folder, 'plugins', 'inbox'), { recursive: true });
  await writeFile(
    join(folder, 'plugins', 'inbox', 'svc.plugin.json'),
    JSON.stringify({
      schema: 'svc.plugin/3',
      id: 'inbox',
      version: '1.0.0',
      webhooks: [{ event: 'push', handler: 'hooks.js#push', auth: { type: 'secret', header: 'x-secret' } }],
    }),
  );
  await writeFile(join(folder, 'plugins', 'inbox', 'hooks.js'), 'export const push = () => null;');
  await svc('up', '-d');
  const { secret } = (await svc('webhooks', 'provision', 'inbox', 'push')).json.result;
  const { clientSecret } = (await svc('clients', 'create', 'ci')).json.result;
  const { token } = (await svc('tokens', 'mint', 'ci')).json.result;
  // Into the logs by every way that is open: path, header, body of a refused call.
  const { url } = await service('gateway');
  for (const value of [secret, clientSecret, token, PLANTED.staticToken])
    await fetch(`${url}/api/v1/${value}?token=${value}`, { headers: { authorization: `Bearer ${value}x` } });

  // A line of an older version, or of a plugin, that nobody masked when it was written.
  const stray = {
    level: 'info',
    time: 1,
    message: `key ${PLANTED.jwt}`,
    meta: { password: PLANTED.pluginSetting },
  };
  await writeFile(join(dataDir, 'logs', 'rest.log'), `${JSON.stringify(stray)}\n`, { flag: 'a' });
  const { json, code } = await svc('report', 'bundle.tar.gz', '--token', PLANTED.ownToken);
  expect([code, json.result.contents]).toEqual([
    0,
    expect.arrayContaining([
      'versions.json',
      'config.json',
      'status.json',
      'doctor.json',
      'logs/gateway.log',
    ]),
  ]);

  const bundle = gunzipSync(await readFile(join(folder, 'bundle.tar.gz'))).toString('utf8');
  const kept = ['keys.json', 'credentials.json', 'run/token.json'].map(async (file) =>
    JSON.parse(await readFile(join(dataDir, file), 'utf8')),
  );
  const [keys, credentials, cached] = await Promise.all(kept);
  const secrets = {
    ...PLANTED,
    ...keys,
    operatorSecret: credentials.clientSecret,
    operatorToken: cached?.accessToken,
    secret,
    clientSecret,
    token,
  };
  for (const [name, value] of Object.entries(secrets))
    expect({ name, found: bundle.includes(value as string) }).toEqual({ name, found: false });
  for (const there of [
    '"svc":',
    '"profile": "development"',
    '"state": "ready"',
    '"checks"',
    'gateway is ready',
  ])
    expect(bundle).toContain(there);

  expect((await svc('report', 'bundle.tar.gz')).json.error.code).toBe('CONFLICT');
});

test('a report works for a project with an invalid config', async () => {
  const { svc, folder } = await testPlatform();
  await writeFile(join(folder, 'svc.config.json'), '{"gatway": {}}');
  const { code } = await svc('report');
  await writeFile(join(folder, 'svc.config.json'), '{}');
  expect(code).toBe(0);
  const bundle = gunzipSync(await readFile(join(folder, 'svc-report.tar.gz'))).toString('utf8');
  expect(bundle).toContain('is not a known key; did you mean gateway?');
});
