import { createHmac } from 'node:crypto';
import { sign as signGithub } from '@octokit/webhooks-methods';
import fc from 'fast-check';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Stripe } from 'stripe';
import { Webhook as SvixWebhook } from 'svix';
import { describe, expect, test } from 'vitest';
import { provisionWebhook, WebhookAuthConfig } from '../../../src/contracts/index.ts';
import { makeSecret } from '../../../src/daemons/gateway/domain/webhooks/verify/new-secret.ts';
import { systemRandom } from '../../../src/kit/security/random.ts';
import { type DeclaredAuth, verificationKey } from '../../../src/webhooks/schemes/index.ts';
import { deliver, startGateway } from '../../support/gateway.ts';
import { keysOf, signDeclared, verifyDeclared } from '../../support/signed-request.ts';

const SENDERS = new URL('../../fixtures/projects/senders', import.meta.url).pathname;
const NOW = Date.UTC(2030, 0, 1);
const SECONDS = NOW / 1000;
const PROVIDERS = ['github', 'stripe', 'slack', 'shopify', 'standard-webhooks'] as const;
type Provider = (typeof PROVIDERS)[number];

const authOf = (provider: Provider): DeclaredAuth =>
  WebhookAuthConfig.parse({ type: 'provider', provider }) as DeclaredAuth;
const verify = (
  provider: Provider,
  headers: Record<string, string>,
  body: string | Buffer,
  keys = keysOf('unused'),
  now = NOW,
) => verifyDeclared(authOf(provider), Object.entries(headers).flat(), Buffer.from(body), keys, now);
const faultOf = (...args: Parameters<typeof verify>): string => {
  const verdict = verify(...args);
  return verdict.valid ? `valid (${verdict.secret})` : verdict.fault;
};

/** What an own secret of ours looks like to each sender. */
const secretFor = (provider: Provider): string => makeSecret(authOf(provider), systemRandom());

const bodies = fc.json().map((text) => text);

describe("signed by the senders' own libraries", () => {
  test('github', async () => {
    await fc.assert(
      fc.asyncProperty(bodies, fc.string({ minLength: 1 }), async (body, secret) => {
        const headers = { 'X-Hub-Signature-256': await signGithub(secret, body) };
        expect(faultOf('github', headers, body, keysOf(secret))).toBe('valid (current)');
      }),
      { numRuns: 50 },
    );
  });

  const stripe = new Stripe('key_unused');
  test('stripe', () => {
    const secret = 'whsec_test_secret';
    fc.assert(
      fc.property(bodies, (body) => {
        const header = stripe.webhooks.generateTestHeaderString({
          payload: body,
          secret,
          timestamp: SECONDS,
        });
        expect(faultOf('stripe', { 'Stripe-Signature': header }, body, keysOf(secret))).toBe(
          'valid (current)',
        );
      }),
    );
  });

  test('standardwebhooks and svix, with a generated secret', () => {
    const secret = secretFor('standard-webhooks');
    fc.assert(
      fc.property(bodies, fc.uuid(), (body, id) => {
        const signature = new StandardWebhook(secret).sign(id, new Date(NOW), body);
        const headers = {
          'webhook-id': id,
          'webhook-timestamp': String(SECONDS),
          'webhook-signature': signature,
        };
        expect(faultOf('standard-webhooks', headers, body, keysOf(secret))).toBe('valid (current)');
        const svix = {
          'svix-id': id,
          'svix-timestamp': String(SECONDS),
          'svix-signature': new SvixWebhook(secret).sign(id, new Date(NOW), body),
        };
        expect(faultOf('standard-webhooks', svix, body, keysOf(secret))).toBe('valid (current)');
      }),
    );
  });

  test("slack's documented example", () => {
    const body =
      'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c';
    const headers = {
      'X-Slack-Request-Timestamp': '1531420618',
      'X-Slack-Signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    };
    const keys = keysOf('8f742231b10e8888abcd99yyyzzz85a5');
    expect(faultOf('slack', headers, body, keys, 1531420618_000)).toBe('valid (current)');
    expect(faultOf('slack', headers, `${body}x`, keys, 1531420618_000)).toBe('mismatch');
  });

  test("shopify's documented computation: base64 of the HMAC over the raw body", () => {
    const body = '{"id":820982911946154508,"email":"jon@example.com"}';
    const digest = createHmac('sha256', 'shpss_client_secret').update(body, 'utf8').digest('base64');
    const headers = { 'X-Shopify-Hmac-SHA256': digest };
    expect(faultOf('shopify', headers, body, keysOf('shpss_client_secret'))).toBe('valid (current)');
    const hex = Buffer.from(digest, 'base64').toString('hex');
    expect(faultOf('shopify', { 'X-Shopify-Hmac-SHA256': hex }, body, keysOf('shpss_client_secret'))).toBe(
      'encoding',
    );
  });

  test('their libraries accept our signatures', async () => {
    const body = '{"a":1}';
    const key = verificationKey(secretFor('standard-webhooks'));
    const standard = signDeclared(authOf('standard-webhooks'), key, Buffer.from(body), {
      nowMs: Date.now(),
      id: 'msg_1',
    });
    expect(new StandardWebhook(key.text).verify(body, standard)).toEqual({ a: 1 });
    expect(() => new SvixWebhook(key.text).verify(body, standard)).not.toThrow();
    const signed = signDeclared(authOf('stripe'), key, Buffer.from(body), { nowMs: Date.now(), id: '' });
    expect(stripe.webhooks.constructEvent(body, signed['stripe-signature']!, key.text)).toMatchObject({
      a: 1,
    });
  });
});

test.each(PROVIDERS)('%s: our signature is valid; a changed byte or another secret is not', (provider) => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 200 }), fc.nat(), (bytes, at) => {
      const body = Buffer.from(bytes);
      const secret = secretFor(provider);
      const headers = signDeclared(authOf(provider), verificationKey(secret), body, {
        nowMs: NOW,
        id: 'msg_1',
      });
      expect(faultOf(provider, headers, body, keysOf(secret))).toBe('valid (current)');
      expect(faultOf(provider, headers, body, keysOf(secretFor(provider), secret))).toBe('valid (previous)');
      expect(faultOf(provider, headers, body, keysOf(secretFor(provider)))).toBe('mismatch');
      const tampered = Buffer.from(body);
      tampered[at % tampered.length]! ^= 1;
      expect(faultOf(provider, headers, tampered, keysOf(secret))).toBe('mismatch');
    }),
    { numRuns: 30 },
  );
});

test.each(['stripe', 'slack', 'standard-webhooks'] as const)(
  '%s: 300 s both ways and no second more',
  (provider) => {
    const secret = secretFor(provider);
    const headers = signDeclared(authOf(provider), verificationKey(secret), Buffer.from('{}'), {
      nowMs: NOW,
      id: 'msg_1',
    });
    const at = (seconds: number) => verify(provider, headers, '{}', keysOf(secret), NOW + seconds * 1000);
    for (const seconds of [-300, 0, 300]) expect(at(seconds)).toMatchObject({ valid: true });
    expect(at(301)).toEqual({ valid: false, fault: 'timestamp_outside_tolerance', skewSeconds: 301 });
    expect(at(-301)).toEqual({ valid: false, fault: 'timestamp_outside_tolerance', skewSeconds: -301 });
  },
);

test.each([
  '',
  'now',
  '+1893456000',
  '01893456000',
  '1893456000.0',
  '0x70dbd880',
  ' 1893456000',
  '99999999999999',
])('a timestamp spelled %j is refused, even with a valid signature', (timestamp) => {
  const hex = createHmac('sha256', 's').update(`${timestamp}.{}`).digest('hex');
  const slack = createHmac('sha256', 's').update(`v0:${timestamp}:{}`).digest('hex');
  expect(
    faultOf(
      'slack',
      { 'x-slack-request-timestamp': timestamp, 'x-slack-signature': `v0=${slack}` },
      '{}',
      keysOf('s'),
    ),
  ).toBe('timestamp_malformed');
  // A blank before a field is part of the list's syntax, not of the timestamp.
  if (!timestamp.startsWith(' '))
    expect(faultOf('stripe', { 'stripe-signature': `t=${timestamp},v1=${hex}` }, '{}', keysOf('s'))).toBe(
      'timestamp_malformed',
    );
});

test('of several signatures in one header one must match and all be well-formed', () => {
  const hex = (secret: string) => createHmac('sha256', secret).update(`${SECONDS}.{}`).digest('hex');
  const stripe = (fields: string) =>
    faultOf('stripe', { 'stripe-signature': `t=${SECONDS},${fields}` }, '{}', keysOf('right'));
  expect(stripe(`v1=${hex('wrong')},v1=${hex('right')}`)).toBe('valid (current)');
  expect(stripe(`v0=${hex('right')},v1=${hex('right')}`)).toBe('valid (current)');
  expect(stripe(`v0=${hex('right')}`)).toBe('prefix_missing');
  expect(stripe(`v1=${hex('right')},v1=zz`)).toBe('encoding');
  expect(stripe(`v1=${hex('right').toUpperCase()}`)).toBe('encoding');
  expect(stripe(`t=${SECONDS},v1=${hex('right')}`)).toBe('timestamp_malformed');
  expect(
    stripe(
      Array(17)
        .fill(`v1=${hex('right')}`)
        .join(','),
    ),
  ).toBe('encoding');

  const secret = secretFor('standard-webhooks');
  const signature = new StandardWebhook(secret).sign('m', new Date(NOW), '{}');
  const other = new StandardWebhook(secretFor('standard-webhooks')).sign('m', new Date(NOW), '{}');
  const standard = (value: string, more = {}) =>
    faultOf(
      'standard-webhooks',
      { 'webhook-id': 'm', 'webhook-timestamp': String(SECONDS), 'webhook-signature': value, ...more },
      '{}',
      keysOf(secret),
    );
  expect(standard(`${other} ${signature}`)).toBe('valid (current)');
  expect(standard(`v1a,AAAA ${signature}`)).toBe('valid (current)');
  expect(standard('v1a,AAAA')).toBe('prefix_missing');
  expect(standard(signature.replace(/=$/, ''))).toBe('encoding');
  expect(standard(signature, { 'webhook-id': '' })).toBe('header_missing');
});

test('no random input passes the check or crashes it', () => {
  const names = [
    'stripe-signature',
    'x-slack-signature',
    'x-slack-request-timestamp',
    'webhook-signature',
    'webhook-id',
    'webhook-timestamp',
    'svix-signature',
    'x-hub-signature-256',
    'x-shopify-hmac-sha256',
  ];
  const value = fc.oneof(
    fc.string(),
    fc
      .tuple(fc.constantFrom('t=1893456000,v1=', 'v0=', 'v1,', 'sha256=', ''), fc.base64String())
      .map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom(...names), value), { maxLength: 12 }), (headers) => {
      for (const provider of PROVIDERS) {
        const verdict = verifyDeclared(
          authOf(provider),
          headers.flat(),
          Buffer.from('{}'),
          keysOf('guess-me-not'),
          NOW,
        );
        expect(verdict.valid).toBe(false);
      }
    }),
  );
});

test('provisioning makes a valid secret for the sender, and accepts one of the sender without echoing it', async () => {
  const gateway = await startGateway({ projectDir: SENDERS });
  const call = (body: object) =>
    gateway.call(provisionWebhook, { body: { pluginId: 'senders', ...body } as never });
  const made = await call({ event: 'standard-webhooks' });
  expect(() => new StandardWebhook(made.secret)).not.toThrow();
  expect(made.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);

  const given = await call({ event: 'stripe', secret: 'whsec_made_by_stripe' });
  expect(given).toMatchObject({ secret: '', rotated: false });
  const payload = '{"id":"evt_1"}';
  const timestamp = gateway.clock.now() / 1000;
  const header = new Stripe('k').webhooks.generateTestHeaderString({
    payload,
    secret: 'whsec_made_by_stripe',
    timestamp,
  });
  const reply = await deliver(gateway, {
    pluginId: 'senders',
    event: 'stripe',
    body: payload,
    headers: { 'stripe-signature': header },
  });
  expect([reply.status, reply.body.result]).toEqual([200, { event: 'stripe', saw: { id: 'evt_1' } }]);
  expect(JSON.stringify(gateway.logs.lines)).not.toContain('made_by_stripe');
  gateway.clock.advance(301_000);
  const late = await deliver(gateway, {
    pluginId: 'senders',
    event: 'stripe',
    body: payload,
    headers: { 'stripe-signature': header },
  });
  expect(late.status).toBe(401);

  for (const [event, secret] of [
    ['stripe', 'trailing-newline\n'],
    ['stripe', 'short'],
    ['standard-webhooks', 'whsec_not-base64!'],
    ['sync', 'ünvisible-secret'],
  ]) {
    await expect(call({ event, secret })).rejects.toMatchObject({ code: 'VALIDATION_ERROR', status: 400 });
  }
});
