import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeSecret } from '../../src/daemons/gateway/domain/webhooks/verify/new-secret.ts';
import { gateway } from '../../src/daemons/gateway/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { rest } from '../../src/daemons/rest/index.ts';
import { serviceKey } from '../../src/kit/security/keys.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { startTestDaemon, TEST_KEYS, TEST_OPERATOR } from '../support/daemon.ts';
import { startOtlpReceiver } from '../support/otlp.ts';

const PROJECT = join(import.meta.dirname, '../fixtures/projects/telemetry');
const STATIC_TOKEN = 'a-static-token-without-any-shape';
const random = systemRandom();
const PREVIOUS_SECRET = 'a-former-test-secret-of-more-than-32-bytes';
const ENV = {
  MODEL_KEY: 'model/key without-any+shape',
  BUCKET_ID: 'AKIAEXAMPLEOFATEST',
  BUCKET_KEY: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCY',
};

function jwt(): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const text = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ hostId: 'ci', typ: 'access' })}`;
  return `${text}.${createHmac('sha256', 'x').update(text).digest('base64url')}`;
}

/** Every kind of secret that the platform makes or is told. */
const KINDS: Array<[kind: string, secret: string]> = [
  ['access token', jwt()],
  ['Authorization header', 'Bearer abcdefgh12345678'],
  ['static token', STATIC_TOKEN],
  ['refresh token', `svcr_${random.secret(32)}`],
  ['client secret', `svcs_${random.secret(32)}`],
  ['enrolment token', `svce_${random.secret(32)}`],
  ['webhook secret', makeSecret({ type: 'hmac', header: 'x', algorithm: 'sha256' } as never, random)],
  [
    'standard-webhooks secret',
    makeSecret({ type: 'provider', provider: 'standard-webhooks' } as never, random),
  ],
  ['JWT secret', TEST_KEYS.jwtSecret!],
  ['internal secret', TEST_KEYS.internalSecret],
  ['service key', serviceKey(TEST_KEYS.internalSecret)],
  ['master key', TEST_KEYS.masterKey],
  ["operator's secret", TEST_OPERATOR.clientSecret],
  ['previous JWT secret', PREVIOUS_SECRET],
  ["model's key", ENV.MODEL_KEY],
  ["bucket's key", ENV.BUCKET_KEY],
];

const variable = (name: string): string => ['$', `{${name}}`].join('');
const CONFIG = {
  gateway: { staticTokens: { [STATIC_TOKEN]: { hostId: 'ci', namespaceId: 'default' } } },
  adapters: {
    llm: { baseUrl: 'http://127.0.0.1/v1', apiKey: variable('MODEL_KEY'), models: { default: 'm' } },
    storage: {
      type: 's3',
      bucket: 'b',
      accessKeyId: variable('BUCKET_ID'),
      secretAccessKey: variable('BUCKET_KEY'),
    },
  },
};

test.each(KINDS)(
  '%s: masked in messages, meta, errors, console, streams, events and diagnostics',
  async (_kind, secret) => {
    const daemon = await startTestDaemon(rest, {
      projectDir: PROJECT,
      peers: createPeers(),
      config: CONFIG,
      env: ENV,
      keys: { previousJwtSecret: PREVIOUS_SECRET },
    });
    // From plugin code: its log, its console, its streams, its events, what it throws.
    const response = await daemon.fetch('/api/v1/plugins/teller/leak', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ secret }),
    });
    expect([response.status, (await response.text()).includes(secret)]).toEqual([500, false]);
    const seen = (): string[] => daemon.logs.lines.map((line) => JSON.stringify(line));
    const places = [
      /"message":"message /,
      /"message":"console /,
      /stdout /,
      /stderr /,
      /thrown /,
      /"type":"leaked"/,
    ];
    for (const place of places) await expect.poll(() => seen().some((line) => place.test(line))).toBe(true);

    // From the platform: whatever way it comes into a record.
    const cause = new Error(`cause ${secret}`);
    daemon.logger.error(`said ${secret}`, {
      meta: { deep: { list: [`in ${secret}`] }, authorization: secret, cookie: secret, token: secret },
      error: new Error(`failed with ${secret}`, { cause }),
    });
    daemon.logger.child({ pluginId: 'x' }).diagnostic({
      domain: 'test',
      event: 'test.leak',
      level: 'error',
      reasonCode: 'LEAK',
      message: `diagnosed ${secret}`,
      outcome: 'failed',
      error: cause,
      evidence: { header: `it was ${secret}`, clientSecret: secret },
    });
    // From the request line and its headers, as an access line and as an error.
    await daemon.fetch(`/api/v1/plugins/none?token=${encodeURIComponent(secret)}`, {
      headers: { authorization: secret, 'x-svc-service-key': secret.slice(0, 40) },
    });
    // Nor the end of it, where a pattern may have stopped too early.
    const leaks = seen().filter((line) => line.includes(secret) || line.includes(secret.slice(-10)));
    expect(leaks).toEqual([]);
    expect(seen().filter((line) => line.includes('[redacted]')).length).toBeGreaterThan(7);
  },
);

test('the gateway reveals no secret, wherever a client sends one', {
  timeout: 60_000,
}, async () => {
  const receiver = await startOtlpReceiver();
  const front = await startTestDaemon(gateway, {
    projectDir: join(import.meta.dirname, '../fixtures/projects/trace'),
    peers: createPeers(),
    config: CONFIG,
    env: ENV,
    keys: { previousJwtSecret: PREVIOUS_SECRET },
    otlp: { endpoint: receiver.endpoint, headers: {} },
  });
  const admin = { authorization: `Bearer ${STATIC_TOKEN}` };
  const json = { 'content-type': 'application/json' };
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    front.fetch(path, { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) });
  const provisioned = await post('/api/v1/webhooks/provision', { pluginId: 'relay', event: 'pushed' }, admin);
  const given = ((await provisioned.json()) as { secret: string }).secret;
  for (const secret of [...KINDS.map(([, value]) => value), given]) {
    const inUrl = encodeURIComponent(secret);
    await front.fetch(`/api/v1/plugins/${inUrl}/x?access_token=${inUrl}`, {
      headers: { authorization: `Bearer ${secret}` },
    });
    await front.fetch('/api/v1/whoami', { headers: { authorization: secret, cookie: `session=${secret}` } });
    await post('/auth/token', { clientId: secret, clientSecret: secret });
    await post('/auth/refresh', { refreshToken: secret });
    await post('/hosts/register', { name: secret, publicKey: secret }, { authorization: `Bearer ${secret}` });
    await post('/internal/dispatch', { pluginId: secret }, { 'x-internal-secret': secret });
    // The webhook's own is no secret to the sender of a genuine delivery; its body may repeat any.
    await post(
      `/webhooks/relay/pushed?key=${inUrl}`,
      { secret },
      { 'x-svc-namespace': 'default', 'x-token': secret, 'x-other': secret },
    );
  }
  const deliveries = await (
    await front.fetch('/api/v1/webhooks/deliveries?limit=100', { headers: admin })
  ).text();
  front.clock.advance(1000);
  await expect.poll(() => receiver.spans.length).toBeGreaterThan(KINDS.length);
  const told = {
    logs: JSON.stringify(front.logs.lines),
    spans: JSON.stringify(receiver.spans),
    metrics: await (await front.fetch('/metrics')).text(),
    deliveries,
  };
  for (const [kind, secret] of [...KINDS, ["the webhook's own", given]] as const) {
    for (const [place, text] of Object.entries(told)) {
      expect([kind, place, text.includes(secret), text.includes(encodeURIComponent(secret))]).toEqual([
        kind,
        place,
        false,
        false,
      ]);
    }
  }
});
