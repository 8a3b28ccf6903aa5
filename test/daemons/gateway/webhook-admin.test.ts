import { expect, test } from 'vitest';
import {
  listWebhooks,
  pauseWebhook,
  provisionWebhook,
  revokeWebhook,
  revokeWebhookInstance,
} from '../../../src/contracts/index.ts';
import { hours, minutes } from '../../../src/kit/time/duration.ts';
import {
  ADMIN_TOKEN,
  deliver,
  MEMBER_TOKEN,
  OTHER_TOKEN,
  provision,
  startGateway,
} from '../../support/gateway.ts';

const plain = { pluginId: '@acme/orders', event: 'plain' } as never;

test('provisioning again rotates, and the previous secret is valid for 24 hours', async () => {
  const gateway = await startGateway();
  const first = await gateway.call(provisionWebhook, { body: plain });
  const second = await gateway.call(provisionWebhook, { body: plain });
  expect([first.rotated, second.rotated]).toEqual([false, true]);
  expect(first.secret).not.toBe(second.secret);
  const status = async (secret: string) => (await deliver(gateway, { event: 'plain', secret })).status;

  gateway.clock.advance(hours(24) - 1);
  expect([await status(first.secret), await status(second.secret)]).toEqual([200, 200]);
  gateway.clock.advance(1);
  expect([await status(first.secret), await status(second.secret)]).toEqual([401, 200]);
});

test('a third secret ends the first at once: only one previous secret is kept', async () => {
  const gateway = await startGateway();
  const secrets = [
    await provision(gateway, 'plain'),
    await provision(gateway, 'plain'),
    await provision(gateway, 'plain'),
  ];
  const statuses = await Promise.all(
    secrets.map(async (secret) => (await deliver(gateway, { event: 'plain', secret })).status),
  );
  expect(statuses).toEqual([401, 200, 200]);
});

test('after the loss of the master key a webhook works once it is provisioned again', async () => {
  const first = await startGateway();
  await provision(first, 'plain');
  await first.close();
  const keys = { masterKey: Buffer.alloc(32, 8).toString('base64url') };
  const gateway = await startGateway({ dataDir: first.dataDir, clock: first.clock, keys });
  const status = async (secret: string) => (await deliver(gateway, { event: 'plain', secret })).status;
  expect(await status('any')).toBe(500);
  const secret = await provision(gateway, 'plain');
  expect([await status(secret), await status('any')]).toEqual([200, 401]);
  gateway.clock.advance(hours(24));
  expect([await status(secret), await status('any')]).toEqual([200, 401]);
});

test('the list shows the last use of the previous secret, and the log warns four hours before its end', async () => {
  const gateway = await startGateway();
  const former = await provision(gateway, 'plain');
  const current = await provision(gateway, 'plain');
  const lastUse = async () =>
    (await gateway.call(listWebhooks)).items.find(({ event }) => event === 'plain')?.previousUsedAt;
  const warnings = () => gateway.logs.lines.filter((line) => line.event === 'webhook.rotation_unfinished');
  await deliver(gateway, { event: 'plain', secret: current });
  expect(await lastUse()).toBeNull();
  const usedAt = gateway.clock.now();
  await deliver(gateway, { event: 'plain', secret: former });
  await expect.poll(lastUse).toBe(usedAt);
  expect(warnings()).toEqual([]);

  gateway.clock.advance(hours(20));
  await deliver(gateway, { event: 'plain', secret: former });
  await deliver(gateway, { event: 'plain', secret: former });
  expect(warnings()).toMatchObject([
    { level: 'warn', tenantId: 'default', message: expect.stringContaining('@acme/orders plain') },
  ]);
});

test('revoking ends both secrets; provisioning afterwards starts from scratch', async () => {
  const gateway = await startGateway();
  const former = await provision(gateway, 'plain');
  const current = await provision(gateway, 'plain');
  expect(await gateway.call(revokeWebhook, { params: plain })).toEqual({ revoked: true });
  for (const secret of [former, current])
    expect((await deliver(gateway, { event: 'plain', secret })).status).toBe(401);
  await expect(gateway.call(revokeWebhook, { params: plain })).rejects.toMatchObject({
    code: 'WEBHOOK_NOT_FOUND',
    status: 404,
  });
  expect((await gateway.call(provisionWebhook, { body: plain })).rotated).toBe(false);
});

test('each instance of a multi webhook has its own secret', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'shop', 'eu/1');
  await provision(gateway, 'shop', 'us');
  const params = { pluginId: '@acme/orders', event: 'shop', instanceId: 'us' } as never;
  await gateway.call(revokeWebhookInstance, { params });
  const { items } = await gateway.call(listWebhooks);
  const shop = items.find(({ event }) => event === 'shop')!;
  expect(shop).toMatchObject({ multi: true, provisioned: true });
  expect(shop.instances.map(({ instanceId }) => instanceId)).toEqual(['eu/1']);
  expect(shop.instances[0]!.url).toMatch(/\/webhooks\/%40acme%2Forders\/shop\/eu%2F1$/);
  expect((await deliver(gateway, { event: 'shop', instance: 'eu/1', secret })).status).toBe(200);
});

test('a missing or superfluous instance id is 400 here, an unknown plugin or event 404', async () => {
  const gateway = await startGateway();
  const attempt = (body: object) =>
    gateway.call(provisionWebhook, { body: body as never }).catch((error) => `${error.status} ${error.code}`);
  expect(await attempt({ pluginId: '@acme/orders', event: 'shop' })).toBe('400 VALIDATION_ERROR');
  expect(await attempt({ pluginId: '@acme/orders', event: 'plain', instanceId: 'x' })).toBe(
    '400 VALIDATION_ERROR',
  );
  expect(await attempt({ pluginId: '@acme/orders', event: 'shop', instanceId: '..' })).toBe(
    '400 VALIDATION_ERROR',
  );
  expect(await attempt({ pluginId: '@acme/orders', event: 'no' })).toBe('404 WEBHOOK_NOT_FOUND');
  expect(await attempt({ pluginId: 'nobody', event: 'plain' })).toBe('404 PLUGIN_NOT_FOUND');
  expect(await attempt({ pluginId: '@acme/orders' })).toBe('400 VALIDATION_ERROR');
  expect(await attempt({ pluginId: '@acme/orders', event: 'plain', surprise: 1 })).toBe(
    '400 VALIDATION_ERROR',
  );
});

test('the list shows declared and provisioned webhooks per namespace, and never a secret', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'created');
  const { items, nextCursor } = await gateway.call(listWebhooks);
  expect(nextCursor).toBeNull();
  expect(items.map(({ event }) => event)).toEqual([
    'created',
    'later',
    'plain',
    'identified',
    'challenged',
    'shop',
    'small',
    'checked',
    'announced',
  ]);
  expect(items[0]).toEqual({
    pluginId: '@acme/orders',
    event: 'created',
    multi: false,
    paused: false,
    unrecorded: 0,
    auth: 'hmac',
    header: 'x-signature',
    prefix: 'sha256=',
    encoding: 'hex',
    protects: { body: true, url: false, time: false, sender: true },
    async: false,
    provisioned: true,
    url: `${gateway.url.replace('127.0.0.1', 'localhost')}/webhooks/%40acme%2Forders/created`,
    rotatedAt: gateway.clock.now(),
    previousExpiresAt: null,
    previousUsedAt: null,
    instances: [],
  });
  expect(JSON.stringify(items)).not.toContain(secret);
  const others = await gateway.call(listWebhooks, undefined, OTHER_TOKEN);
  expect(others.items.every(({ provisioned }) => !provisioned)).toBe(true);
});

test('the list shows paused instances, whether paused alone or with the whole webhook', async () => {
  const gateway = await startGateway();
  for (const instance of ['eu', 'us']) await provision(gateway, 'shop', instance);
  const shop = { pluginId: '@acme/orders', event: 'shop' };
  const paused = async () => {
    const { items } = await gateway.call(listWebhooks);
    const { paused: whole, instances } = items.find(({ event }) => event === 'shop')!;
    return [whole, ...instances.map((instance) => instance.paused)];
  };
  await gateway.call(pauseWebhook, { body: { ...shop, instanceId: 'eu' } as never });
  expect(await paused()).toEqual([false, true, false]);
  await gateway.call(pauseWebhook, { body: shop as never });
  expect(await paused()).toEqual([true, true, true]);
});

test('provision and revoke share 10 calls a minute per namespace, the list has 60', async () => {
  const gateway = await startGateway();
  for (let i = 0; i < 9; i++) await provision(gateway, 'plain');
  await gateway.call(revokeWebhook, { params: plain });
  const refused = await gateway.call(provisionWebhook, { body: plain }).catch((error) => error);
  expect(refused).toMatchObject({ code: 'RATE_LIMIT_EXCEEDED', headers: { 'retry-after': '60' } });
  await expect(gateway.call(revokeWebhook, { params: plain })).rejects.toMatchObject({ status: 429 });
  await provision(gateway, 'plain', undefined, OTHER_TOKEN);
  for (let i = 0; i < 60; i++) await gateway.call(listWebhooks);
  await expect(gateway.call(listWebhooks)).rejects.toMatchObject({ status: 429 });
  gateway.clock.advance(minutes(1));
  await provision(gateway, 'plain');
});

test('a tenant that exhausts its calls does not block the operator in other namespaces', async () => {
  const gateway = await startGateway();
  for (let i = 0; i < 10; i++) await gateway.call(provisionWebhook, { body: plain }, MEMBER_TOKEN);
  await expect(gateway.call(provisionWebhook, { body: plain })).rejects.toMatchObject({ status: 429 });
  await gateway.call(provisionWebhook, { body: plain }, ADMIN_TOKEN, { 'x-svc-namespace': 'other' });
});

test('the admin API without a token is 401; another namespace requires an admin', async () => {
  const gateway = await startGateway();
  expect((await gateway.fetch('/api/v1/webhooks')).status).toBe(401);
  const acting = { 'x-svc-namespace': 'other' };
  await expect(gateway.call(provisionWebhook, { body: plain }, MEMBER_TOKEN, acting)).rejects.toMatchObject({
    code: 'FORBIDDEN',
  });
  const { secret } = await gateway.call(provisionWebhook, { body: plain }, ADMIN_TOKEN, acting);
  expect((await deliver(gateway, { event: 'plain', secret, namespace: 'other' })).status).toBe(200);
});

test('secrets are sealed at rest', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'plain');
  await gateway.close();
  const { readFile, readdir } = await import('node:fs/promises');
  for (const file of await readdir(gateway.dataDir)) {
    const bytes = await readFile(`${gateway.dataDir}/${file}`);
    expect([file, bytes.includes(secret)]).toEqual([file, false]);
  }
});

test('a webhook declared without auth keeps the gateway from starting, and is named', async () => {
  const { mkdtemp, mkdir, writeFile } = await import('node:fs/promises');
  const { tmpdir } = await import('node:os');
  const project = await mkdtemp(`${tmpdir()}/svc-no-auth-`);
  await mkdir(`${project}/plugins/open`, { recursive: true });
  await writeFile(`${project}/plugins/open/hooks.js`, 'export const on = () => {};\n');
  for (const auth of [undefined, { type: 'trust-me' }]) {
    const manifest = {
      schema: 'svc.plugin/3',
      id: 'open',
      version: '1.0.0',
      webhooks: [{ event: 'any', handler: 'hooks.js#on', auth }],
    };
    await writeFile(`${project}/plugins/open/svc.plugin.json`, JSON.stringify(manifest));
    await expect(startGateway({ projectDir: project })).rejects.toMatchObject({
      code: 'INVALID_MANIFEST',
      message: expect.stringMatching(/open.*webhooks\[0\]\.auth/s),
    });
  }
});
