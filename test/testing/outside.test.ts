import { createHmac } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { createTestHost, type TestHostOptions } from '../../src/testing/index.ts';
import { writeFiles } from '../daemons/marketplace/support.ts';
import { tempDir } from '../support/daemon.ts';

const PLUGIN = {
  'package.json': { name: 'shop', type: 'module' },
  'svc.plugin.json': {
    schema: 'svc.plugin/3',
    id: 'shop',
    version: '1.0.0',
    permissions: { network: ['api.example.com'] },
    commands: [{ id: 'rate', handler: 'h.js#rate' }],
    webhooks: [
      {
        event: 'paid',
        handler: 'h.js#paid',
        auth: { type: 'hmac', header: 'x-signature', prefix: 'sha256=' },
        idempotencyKey: 'id',
      },
      { event: 'own', handler: 'h.js#paid', auth: { type: 'custom', validator: 'h.js#check' } },
    ],
  },
  'h.js': `
    import { createHmac } from 'node:crypto';
    export const rate = async (ctx, { host = 'api.example.com' }) => {
      const answer = await ctx.fetch('https://' + host + '/rates', { method: 'POST', body: 'eur' });
      return { status: answer.status, body: await answer.json() };
    };
    export const paid = (_ctx, { id }) => ({ paid: id });
    export const check = (_ctx, { headers, rawBody, secret }) => ({
      valid: headers['x-own'] === createHmac('sha256', secret).update(Buffer.from(rawBody, 'base64')).digest('hex'),
    });`,
};

async function host(options: Partial<TestHostOptions> = {}) {
  const started = await createTestHost({ plugin: await writeFiles(await tempDir(), PLUGIN), ...options });
  onTestFinished(() => started.close());
  return started;
}

test('the test answers ctx.fetch for hosts that the manifest allows', async () => {
  const asked: string[] = [];
  const { command } = await host({
    async fetch(request) {
      asked.push(`${request.method} ${request.url} ${await request.text()}`);
      return Response.json({ eur: 1.1 }, { status: 201 });
    },
  });
  const { result } = await command<{ status: number; body: { eur: number } }>('rate');
  const eur: number | undefined = result?.body.eur;
  expect([result?.status, eur]).toEqual([201, 1.1]);
  expect(asked).toEqual(['POST https://api.example.com/rates eur']);
  await expect(command('rate', { host: 'evil.example' })).rejects.toMatchObject({
    code: 'PERMISSION_DENIED',
  });
  expect(asked).toHaveLength(1);
});

test('an event is delivered with a signature, and a second time it is a duplicate', async () => {
  const { deliver } = await host();
  expect(await deliver('paid', { id: 'a1' })).toMatchObject({
    status: 200,
    body: { status: 'ok', result: { paid: 'a1' } },
  });
  expect(await deliver('paid', { id: 'a1' })).toMatchObject({ status: 200, body: { status: 'duplicate' } });
  expect(await deliver('paid', { id: 'a1' }, { namespaceId: 'acme' })).toMatchObject({
    body: { status: 'ok' },
  });
});

test('a validator of the plugin can be called directly and by the gateway', async () => {
  const { deliver, validator } = await host();
  const sign = (secret: string, text: string) => createHmac('sha256', secret).update(text).digest('hex');
  const rawBody = '{"id":"a1"}';
  const headers = { 'X-Own': sign('s', rawBody) };
  expect(await validator('own', { headers, rawBody, secret: 's' })).toBe(true);
  expect(await validator('own', { headers, rawBody, secret: 'other' })).toBe(false);
  await expect(validator('paid', { headers, rawBody, secret: 's' })).rejects.toMatchObject({
    code: 'INVALID_HANDLER',
  });

  const signed = await deliver(
    'own',
    { id: 'a1' },
    { headers: (one) => ({ 'x-own': sign(one.secret, one.rawBody) }) },
  );
  expect(signed).toMatchObject({ status: 200, body: { result: { paid: 'a1' } } });
  expect(await deliver('own', { id: 'a1' }, { headers: () => ({ 'x-own': 'wrong' }) })).toMatchObject({
    status: 401,
  });
  await expect(deliver('own', {})).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
});
