import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  getDelivery,
  getWebhookProvider,
  listDeliveries,
  listWebhookProviders,
  listWebhooks,
  provisionWebhook,
  sendSample,
} from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { type DeliveryReply, deliver, startGateway, type TestGateway } from '../../support/gateway.ts';

const PLUGIN = 'shop';

/** The gateway with one webhook `event` for each declaration. */
async function startWith(
  auths: Record<string, object>,
  gateway: Record<string, unknown> = {},
): Promise<TestGateway> {
  const project = await tempDir();
  const folder = join(project, 'plugins', PLUGIN);
  await mkdir(folder, { recursive: true });
  await writeFile(
    join(folder, 'hooks.js'),
    "import { defineWebhook } from 'svc-platform/sdk';\nexport const onEvent = defineWebhook({ execute: async (ctx) => ctx.hostContext.query });\n",
  );
  await writeFile(join(folder, 'package.json'), '{"name":"shop","version":"1.0.0","type":"module"}');
  const webhooks = Object.entries(auths).map(([event, auth]) => ({
    event,
    handler: 'hooks.js#onEvent',
    auth,
  }));
  const manifest = { schema: 'svc.plugin/3', id: PLUGIN, version: '1.0.0', webhooks };
  await writeFile(join(folder, 'svc.plugin.json'), JSON.stringify(manifest));
  return startGateway({ projectDir: project, config: { gateway } });
}

const provision = (gateway: TestGateway, event: string, more: object = {}) =>
  gateway.call(provisionWebhook, { body: { pluginId: PLUGIN, event, ...more } as never });

const send = (gateway: TestGateway, event: string, headers: Record<string, string>, more: object = {}) =>
  deliver(gateway, { pluginId: PLUGIN, event, headers, ...more });

const details = (gateway: TestGateway, { headers }: DeliveryReply) =>
  gateway.call(getDelivery, { params: { webhookId: headers.get('x-webhook-id')! } });

const hmac = (secret: string, text: string) => createHmac('sha256', secret).update(text).digest('hex');

test('HTTP Basic: the generated credentials are accepted, and given ones must have a user', async () => {
  const gateway = await startWith({ basic: { type: 'basic' } });
  const { secret } = await provision(gateway, 'basic');
  expect(secret).toMatch(/^svc:/);
  const header = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });
  expect((await send(gateway, 'basic', header(secret))).status).toBe(200);
  for (const wrong of [
    header(`${secret}x`),
    header(secret.slice(4)),
    { authorization: `Basic ${secret}` },
    {},
  ])
    expect((await send(gateway, 'basic', wrong)).status).toBe(401);
  await expect(provision(gateway, 'basic', { secret: 'no-colon-at-all' })).rejects.toThrow(
    '<user>:<password>',
  );
  const rotated = await provision(gateway, 'basic', { secret: 'user:pass:word' });
  expect(rotated.rotated).toBe(true);
  expect((await send(gateway, 'basic', header('user:pass:word'))).status).toBe(200);
  expect((await send(gateway, 'basic', header(secret))).status).toBe(200);
  gateway.clock.advance(24 * 3600_000);
  expect((await send(gateway, 'basic', header(secret))).status).toBe(401);
});

test('addresses: only listed ones may deliver, behind a trusted proxy too, and the record says so', async () => {
  const auth = { type: 'secret', header: 'x-token', ipAllow: ['192.0.2.0/24', '2001:db8::/32'] };
  const gateway = await startWith({ listed: auth }, { trustedProxies: ['127.0.0.1', '::1'] });
  const { secret } = await provision(gateway, 'listed');
  const from = (address: string) =>
    send(gateway, 'listed', { 'x-token': secret, 'x-forwarded-for': address });
  for (const allowed of ['192.0.2.7', '::ffff:192.0.2.7', '::ffff:c000:207', '2001:db8::1'])
    expect((await from(allowed)).status, allowed).toBe(200);
  for (const other of ['192.0.3.7', '::ffff:192.0.3.7', '2001:db9::1', '192.0.2.7, 192.0.3.7'])
    expect((await from(other)).status, other).toBe(401);
  const refused = await from('192.0.3.9');
  expect(refused.body.error.message).not.toContain('address');
  expect(await details(gateway, refused)).toMatchObject({ explanation: { reason: 'address_not_allowed' } });
  const sample = { pluginId: PLUGIN, event: 'listed', data: {} } as never;
  expect(await gateway.call(sendSample, { body: sample })).toMatchObject({ status: 200 });
});

test('a signed URL: the URL of gateway.publicUrl is checked, and a mismatch is explained', async () => {
  const auth = {
    type: 'signature',
    algorithm: 'hmac-sha256',
    signature: { header: 'x-sig' },
    signed: '{url}{body}',
  };
  const gateway = await startWith({ url: auth }, { publicUrl: 'https://hooks.example.com/svc/' });
  const { url, secret } = await provision(gateway, 'url');
  expect(url).toBe('https://hooks.example.com/svc/webhooks/shop/url');
  const signed = (over: string) => send(gateway, 'url', { 'x-sig': hmac(secret, `${over}{}`) });
  expect((await signed(url)).status).toBe(200);
  for (const other of [url.replace('https', 'http'), `${url}/`, `${gateway.url}/webhooks/shop/url`]) {
    const refused = await signed(other);
    expect(refused.status).toBe(401);
    const { explanation } = await details(gateway, refused);
    expect(explanation).toMatchObject({ reason: 'url_mismatch' });
    expect(explanation?.hint).toContain(other);
    expect(explanation?.hint).toContain('gateway.publicUrl');
  }
  const sample = await gateway.call(sendSample, {
    body: { pluginId: PLUGIN, event: 'url', data: {} } as never,
  });
  expect(sample.status).toBe(200);
});

test('a public key: it is checked when provisioned, verifies, and cannot sign samples', async () => {
  const auth = {
    ...{ type: 'signature', algorithm: 'ed25519', signature: { header: 'x-sig' }, key: 'raw-hex' },
    ...{ signed: '{timestamp}{body}', timestamp: { header: 'x-time' } },
  };
  const gateway = await startWith({ keyed: auth });
  await expect(provision(gateway, 'keyed')).rejects.toThrow('public key of the sender as the 32 bytes');
  for (const secret of ['abcdefgh', 'g'.repeat(64), 'ab'.repeat(31)])
    await expect(provision(gateway, 'keyed', { secret })).rejects.toThrow('in hex (64 digits)');
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex');
  await provision(gateway, 'keyed', { secret: `${raw}\n` });
  const time = String(Math.floor(gateway.clock.now() / 1000));
  const headers = (over: string) => ({
    'x-time': time,
    'x-sig': sign(null, Buffer.from(over), privateKey).toString('hex'),
  });
  expect((await send(gateway, 'keyed', headers(`${time}{}`))).status).toBe(200);
  const wrong = await send(gateway, 'keyed', headers('{}'));
  expect(wrong.status).toBe(401);
  expect(await details(gateway, wrong)).toMatchObject({ explanation: { reason: 'wrong_key' } });
  const sample = gateway.call(sendSample, { body: { pluginId: PLUGIN, event: 'keyed', data: {} } as never });
  await expect(sample).rejects.toThrow('private key that only the sender has');
});

test('units and missing times are explained', async () => {
  const timed = (unit: string) => ({
    ...{ type: 'signature', algorithm: 'hmac-sha256', signature: { header: 'x-sig' } },
    ...{ signed: '{timestamp}.{body}', timestamp: { header: 'x-time', unit } },
  });
  const gateway = await startWith({ s: timed('s'), ms: timed('ms'), iso: timed('iso') });
  const now = gateway.clock.now();
  const texts = { s: String(now / 1000), ms: String(now), iso: new Date(now).toISOString() };
  for (const event of ['s', 'ms', 'iso'] as const) {
    const { secret } = await provision(gateway, event);
    for (const [unit, text] of Object.entries(texts)) {
      const headers = { 'x-time': text, 'x-sig': hmac(secret, `${text}.{}`) };
      const reply = await send(gateway, event, headers);
      expect(reply.status, `${event} ${unit}`).toBe(unit === event ? 200 : 401);
      if (unit === event || event === 'iso' || (event === 'ms' && unit === 's')) continue;
      expect((await details(gateway, reply)).explanation).toMatchObject({
        reason: 'timestamp_unit',
        hint: expect.stringContaining(`"unit": "${unit}"`),
      });
    }
  }
});

test('a query signature and its samples; its values are masked in records', async () => {
  const auth = { type: 'signature', algorithm: 'hmac-sha256', signature: { query: 'sig' } };
  const gateway = await startWith({ query: auth });
  const { secret } = await provision(gateway, 'query');
  const signature = hmac(secret, '{}');
  const reply = await send(gateway, 'query', {}, { query: `?sig=${signature}&page=2` });
  expect(reply).toMatchObject({ status: 200, body: { result: { sig: '[masked]', page: '2' } } });
  const sample = await gateway.call(sendSample, {
    body: { pluginId: PLUGIN, event: 'query', data: {} } as never,
  });
  expect(sample.status).toBe(200);
  expect(JSON.stringify(await details(gateway, reply))).not.toContain(signature);
  expect(JSON.stringify(gateway.logs.lines)).not.toContain(signature);
});

test('what is unprotected is listed, and providers are listed with their help', async () => {
  const gateway = await startWith({
    stripe: { type: 'provider', provider: 'stripe' },
    plain: { type: 'secret', header: 'x-token' },
  });
  const { items } = await gateway.call(listWebhooks);
  const protects = Object.fromEntries(items.map((item) => [item.event, item.protects]));
  expect(protects).toEqual({
    stripe: { body: true, url: false, time: true, sender: true },
    plain: { body: false, url: false, time: false, sender: true },
  });
  const providers = await gateway.call(listWebhookProviders);
  expect(providers.items.find(({ id }) => id === 'stripe')).toMatchObject({
    secretFrom: 'sender',
    verified: true,
  });
  const stripe = await gateway.call(getWebhookProvider, { params: { id: 'stripe' } });
  expect(stripe.sources[0]).toContain('docs.stripe.com');
  const unknown = gateway.call(getWebhookProvider, { params: { id: 'nobody' as never } });
  await expect(unknown).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
  expect((await gateway.call(listDeliveries)).items).toEqual([]);
});
