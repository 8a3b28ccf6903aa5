import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { exchangeBytes } from '../daemons/gateway/support/raw-http.ts';
import { CI_TOKEN, startGateway as startProxy } from '../daemons/gateway/support/start-gateway.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { startGateway } from '../support/gateway.ts';
import { echo, sampleDaemon } from '../support/sample-daemon.ts';

const BODY_LIMIT_BYTES = 100;
const DELIVERY = '/webhooks/%40acme%2Forders/created';
const AUTHORIZATION = `authorization: Bearer ${CI_TOKEN}`;

const sample = () =>
  startTestDaemon(
    sampleDaemon(
      echo({ method: 'POST', path: '/small', body: z.json() }, { bodyLimitBytes: BODY_LIMIT_BYTES }),
    ),
  );

/** Sends a head, and a body where there is one; returns the whole answer. */
const ask = (target: { url: string }, line: string, headers: string[] = [], body = '') =>
  exchangeBytes(target, `${[line, 'host: localhost', ...headers].join('\r\n')}\r\n\r\n${body}`);

const BAD_REQUEST = /^HTTP\/1\.1 400 .*connection: close.*"code":"VALIDATION_ERROR"/is;

describe('request lines of other protocols are 400 and end the connection', () => {
  test.each([
    'DESCRIBE /health RTSP/1.0',
    'SETUP /health RTSP/2.0',
    'SOURCE /health ICE/1.0',
    'GET /health HTTP/2.0',
    'POST /small HTTP/2.0',
    'GET /health',
    'GET /health HTTP/0.9',
    'CONNECT localhost:1 HTTP/2.0',
  ])('%s', async (line) => {
    expect(await ask(await sample(), line)).toMatch(BAD_REQUEST);
  });

  test('also where an expectation comes with them', async () => {
    const answer = await ask(await sample(), 'POST /small HTTP/2.0', ['expect: tea']);
    expect(answer).toMatch(BAD_REQUEST);
  });

  test('on every way into the gateway: proxied calls, deliveries and upgrades', async () => {
    const gateway = await startProxy();
    const known = { headers: { authorization: `Bearer ${CI_TOKEN}` } };
    expect((await gateway.fetch('/api/v1/jobs', known)).status).toBe(200);
    for (const version of [' HTTP/2.0', ' HTTP/0.9', '']) {
      expect(await ask(gateway, `GET /api/v1/jobs${version}`, [AUTHORIZATION])).toMatch(BAD_REQUEST);
      expect(await ask(gateway, `POST ${DELIVERY}${version}`)).toMatch(BAD_REQUEST);
      const upgrade = ['connection: upgrade', 'upgrade: websocket', AUTHORIZATION];
      expect(await ask(gateway, `GET /hosts/connect${version}`, upgrade)).toMatch(BAD_REQUEST);
    }
    expect(gateway.upstream.seen).toHaveLength(1);
  });
});

describe('HTTP/1.0 with Transfer-Encoding is 400 and ends the connection', () => {
  const CHUNKED = ['content-type: application/json', 'transfer-encoding: chunked'];
  const BODY = '2\r\n{}\r\n0\r\n\r\n';

  test('on a service', async () => {
    const daemon = await sample();
    expect(await ask(daemon, 'POST /small HTTP/1.0', CHUNKED, BODY)).toMatch(BAD_REQUEST);
    expect(await ask(daemon, 'POST /small HTTP/1.1', CHUNKED, BODY)).toMatch(/^HTTP\/1\.1 200/);
  });

  test('on proxied calls and deliveries', async () => {
    const gateway = await startProxy();
    const headers = [...CHUNKED, AUTHORIZATION];
    expect(await ask(gateway, 'POST /api/v1/jobs HTTP/1.1', headers, BODY)).toMatch(/^HTTP\/1\.1 200/);
    expect(await ask(gateway, 'POST /api/v1/jobs HTTP/1.0', headers, BODY)).toMatch(BAD_REQUEST);
    expect(await ask(gateway, `POST ${DELIVERY} HTTP/1.0`, headers, BODY)).toMatch(BAD_REQUEST);
    expect(gateway.upstream.seen).toHaveLength(1);
  });
});

describe('"Expect: 100-continue" with a declared length over the limit is 413 without 100 Continue', () => {
  const expecting = (bytes: number, ...more: string[]) => [
    'content-type: application/json',
    'expect: 100-continue',
    `content-length: ${bytes}`,
    ...more,
  ];
  const TOO_LARGE = /^HTTP\/1\.1 413 .*"code":"PAYLOAD_TOO_LARGE"/s;

  test('on an endpoint, whose limit is its own', async () => {
    const daemon = await sample();
    const send = (bytes: number) => ask(daemon, 'POST /small HTTP/1.1', expecting(bytes));
    expect(await send(BODY_LIMIT_BYTES + 1)).toMatch(TOO_LARGE);
    expect(await send(BODY_LIMIT_BYTES)).toMatch(/^HTTP\/1\.1 100 Continue/);
  });

  test('on proxied calls', async () => {
    const gateway = await startProxy({ gateway: { bodyLimitBytes: 1024, staticTokens: TOKENS } });
    const send = (bytes: number) =>
      ask(gateway, 'POST /api/v1/jobs HTTP/1.1', expecting(bytes, AUTHORIZATION));
    expect(await send(1025)).toMatch(TOO_LARGE);
    expect(await send(1024)).toMatch(/^HTTP\/1\.1 100 Continue/);
  });

  test.each([
    ['without forwarded addresses', []],
    ['with two forwarded addresses', ['x-forwarded-for: 10.0.0.1', 'x-forwarded-for: 10.0.0.2']],
  ])('on deliveries %s, whose limit is maxBodyBytes', async (_what, more) => {
    const gateway = await startGateway();
    const send = (bytes: number) =>
      ask(gateway, `POST ${DELIVERY} HTTP/1.1`, expecting(bytes, 'x-svc-namespace: default', ...more));
    expect(await send(1024 * 1024 + 1)).toMatch(TOO_LARGE);
    expect(await send(1024 * 1024)).toMatch(/^HTTP\/1\.1 100 Continue/);
  });
});

const TOKENS = { [CI_TOKEN]: { hostId: 'ci', namespaceId: 'acme' } };

test.each(['<', '>', '"', "'"])('a request id with %s is replaced, on every way in', async (mark) => {
  const gateway = await startProxy();
  const sent = `x-request-id: a${mark}b`;
  for (const [line, ...headers] of [
    ['GET /health HTTP/1.1'],
    ['GET /api/v1/jobs HTTP/1.1', AUTHORIZATION],
    [`POST ${DELIVERY} HTTP/1.1`, 'content-length: 0'],
    [`POST ${DELIVERY} HTTP/1.1`, 'content-length: 0', 'connection: close'],
    ['GET /hosts/connect HTTP/1.1', 'connection: upgrade', 'upgrade: websocket'],
    ['CONNECT localhost:1 HTTP/1.1'],
  ] as const) {
    const answer = await ask(gateway, line, [...headers, sent]);
    expect(answer, line).toMatch(/^x-request-id: [0-9a-f-]{36}\r$/im);
    expect(answer, line).not.toContain(`a${mark}b`);
  }
});
