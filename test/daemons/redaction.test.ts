import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeSecret } from '../../src/daemons/gateway/domain/webhook-new-secret.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { rest } from '../../src/daemons/rest/index.ts';
import { serviceKey } from '../../src/kit/keys.ts';
import { systemRandom } from '../../src/kit/random.ts';
import { startTestDaemon, TEST_KEYS, TEST_OPERATOR } from '../support/daemon.ts';

const PROJECT = join(import.meta.dirname, '../fixtures/projects/telemetry');
const STATIC_TOKEN = 'a-static-token-without-any-shape';
const random = systemRandom();

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
];

test.each(KINDS)(
  '%s: masked in messages, meta, errors, console, streams, events and diagnostics',
  async (_kind, secret) => {
    const daemon = await startTestDaemon(rest, {
      projectDir: PROJECT,
      peers: createPeers(),
      config: { gateway: { staticTokens: { [STATIC_TOKEN]: { hostId: 'ci', namespaceId: 'default' } } } },
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
