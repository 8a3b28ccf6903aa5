import { request } from 'node:http';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { days, minutes } from '../../../src/kit/time/duration.ts';
import {
  deliver,
  handlerRuns,
  MEMBER_TOKEN,
  OTHER_TOKEN,
  provision,
  startGateway,
} from '../../support/gateway.ts';
import { eventually } from '../../support/webhook-senders.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test('step 1: an unknown plugin, an unknown event, a missing and a superfluous instance are 404', async () => {
  const gateway = await startGateway();
  const codes = await Promise.all(
    [
      { pluginId: '@acme/nobody', event: 'created' },
      { event: 'nothing' },
      { event: 'shop' },
      { event: 'created', instance: 'x' },
      { pluginId: '__proto__', event: 'constructor' },
    ].map(async (target) => {
      const { status, body, headers } = await deliver(gateway, target);
      expect(headers.get('x-webhook-id')).toMatch(UUID);
      return `${status} ${body.error.code}`;
    }),
  );
  expect(codes).toEqual([
    '404 PLUGIN_NOT_FOUND',
    '404 WEBHOOK_NOT_FOUND',
    '404 WEBHOOK_NOT_FOUND',
    '404 WEBHOOK_NOT_FOUND',
    '404 PLUGIN_NOT_FOUND',
  ]);
});

test('step 2: a missing namespace header is 400, also when the URL names a namespace without permission', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'plain');
  for (const query of ['', '?namespace=default']) {
    const { status, body } = await deliver(gateway, { event: 'plain', secret, namespace: null, query });
    expect([status, body.error.code]).toEqual([400, 'NAMESPACE_REQUIRED']);
  }
  const empty = await deliver(gateway, { event: 'plain', secret, namespace: '' });
  expect([empty.status, empty.body.error.code]).toEqual([400, 'NAMESPACE_REQUIRED']);
  const odd = await deliver(gateway, { event: 'plain', secret, namespace: 'a b' });
  expect([odd.status, odd.body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
  const long = await deliver(gateway, { event: 'plain', secret, namespace: 'x'.repeat(129) });
  expect(long.body.error.message).toBe('The x-svc-namespace header must be at most 128 characters long.');
});

test('the namespace may be in the URL if provisioning allowed it, also after a rotation', async () => {
  const gateway = await startGateway();
  const { provisionWebhook } = await import('../../../src/contracts/index.ts');
  const { url, secret } = await gateway.call(provisionWebhook, {
    body: { pluginId: '@acme/orders', event: 'plain', namespaceInUrl: true } as never,
  });
  expect(url).toBe(
    `${gateway.url.replace('127.0.0.1', 'localhost')}/webhooks/%40acme%2Forders/plain?namespace=default`,
  );
  const deliverTo = async (at: string, token: string) => {
    const to = at.replace('localhost', '127.0.0.1');
    return (await fetch(to, { method: 'POST', body: '{}', headers: { 'x-token': token } })).status;
  };
  expect(await deliverTo(url, secret)).toBe(200);
  const rotated = await gateway.call(provisionWebhook, {
    body: { pluginId: '@acme/orders', event: 'plain' } as never,
  });
  expect(rotated.url).toBe(url);
  for (const token of [secret, rotated.secret]) expect(await deliverTo(url, token)).toBe(200);
  const withdrawn = await gateway.call(provisionWebhook, {
    body: { pluginId: '@acme/orders', event: 'plain', namespaceInUrl: false } as never,
  });
  expect(withdrawn.url).not.toContain('?');
  expect(await deliverTo(url, withdrawn.secret)).toBe(400);
});

test('step 3: beyond the endpoint limit it is 429 with Retry-After, and namespaces have separate limits', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'plain');
  const other = await provision(gateway, 'plain', undefined, OTHER_TOKEN);
  for (let i = 0; i < 60; i++) expect((await deliver(gateway, { event: 'plain', secret })).status).toBe(200);
  const refused = await deliver(gateway, { event: 'plain', secret });
  expect([refused.status, refused.body.error.code]).toEqual([429, 'RATE_LIMIT_EXCEEDED']);
  expect(Number(refused.headers.get('retry-after'))).toBe(60);
  expect((await deliver(gateway, { event: 'plain', secret: other, namespace: 'other' })).status).toBe(200);
  gateway.clock.advance(minutes(1));
  expect((await deliver(gateway, { event: 'plain', secret })).status).toBe(200);
});

test('step 3: namespaces without a secret share one budget, and use up no other', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'plain');
  const sendAs = async (namespace: string, told: string) =>
    (await deliver(gateway, { event: 'plain', secret: told, namespace })).status;
  for (let n = 0; n < 60; n++) expect(await sendAs(`made-up-${n}`, 'x')).toBe(401);
  expect(await sendAs('made-up-60', 'x')).toBe(429);
  expect(await sendAs('default', secret)).toBe(200);
});

test('step 4: a challenge is echoed without secret or handler; anything else needs the secret', async () => {
  const gateway = await startGateway();
  const challenge = { type: 'url_verification', challenge: 'abc' };
  const answered = await deliver(gateway, { event: 'challenged', payload: challenge });
  expect([answered.status, answered.body]).toEqual([200, { challenge: 'abc' }]);
  for (const payload of [
    { type: 'other', challenge: 'abc' },
    { type: 'url_verification' },
    { __proto__: challenge },
  ]) {
    expect((await deliver(gateway, { event: 'challenged', payload })).status).toBe(401);
  }
  expect(handlerRuns(gateway)).toBe(0);
});

test('step 5: an id seen within 7 days is reported as a duplicate before authentication', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'created');
  const payload = { delivery: { id: 'd-1' } };
  expect((await deliver(gateway, { event: 'created', secret, payload })).body.status).toBe('ok');
  const again = await deliver(gateway, { event: 'created', secret, payload });
  expect([again.status, again.body]).toEqual([200, { status: 'duplicate' }]);
  const unsigned = await deliver(gateway, { event: 'created', payload });
  expect([unsigned.status, unsigned.body]).toEqual([200, { status: 'duplicate' }]);
  expect(handlerRuns(gateway)).toBe(1);

  gateway.clock.advance(days(7) - 1);
  expect((await deliver(gateway, { event: 'created', secret, payload })).body.status).toBe('duplicate');
  gateway.clock.advance(1);
  expect((await deliver(gateway, { event: 'created', secret, payload })).body.status).toBe('ok');
  expect(handlerRuns(gateway)).toBe(2);
});

test('a number and its digits as text are two ids; tenants, events and instances have separate ids', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'created');
  const other = await provision(gateway, 'created', undefined, OTHER_TOKEN);
  const send = (id: unknown, extra = {}) =>
    deliver(gateway, { event: 'created', secret, payload: { delivery: { id } }, ...extra });
  expect((await send(7)).body.status).toBe('ok');
  expect((await send('7')).body.status).toBe('ok');
  expect((await send(7, { secret: other, namespace: 'other' })).body.status).toBe('ok');
  expect((await send(7)).body.status).toBe('duplicate');
  for (const id of [null, '', {}, true]) {
    expect((await send(id)).body.status).toBe('ok');
    expect((await send(id)).body.status).toBe('ok');
  }
});

test('a number with a fraction is an id too, if no other number parses to the same value', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'created');
  const send = async (id: number, sent: number) => {
    const payload = { delivery: { id }, sent };
    return (await deliver(gateway, { event: 'created', secret, payload })).body.status;
  };
  // A redelivery is known whatever else its body says.
  expect([await send(1795278431.25, 1), await send(1795278431.25, 2)]).toEqual(['ok', 'duplicate']);
  const long = 1712345678.1234567;
  expect([await send(long, 1), await send(long, 2), await send(long, 2)]).toEqual(['ok', 'ok', 'duplicate']);
});

test('numbers that parse to the same value are two ids, unless the whole body is the same', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'created');
  const send = async (id: string) =>
    (await deliver(gateway, { event: 'created', secret, body: `{"delivery":{"id":${id}}}` })).body.status;
  expect(await send('12345678901234567890')).toBe('ok');
  expect(await send('12345678901234567891')).toBe('ok');
  expect(await send('12345678901234567890')).toBe('duplicate');
  expect(await send('1e400')).toBe('ok');
  expect(await send('1e401')).toBe('ok');
});

test('a forged delivery writes no marker: the genuine one with the same id still runs', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'created');
  const payload = { delivery: { id: 'x' } };
  expect((await deliver(gateway, { event: 'created', secret: 'wrong', payload })).status).toBe(401);
  expect((await deliver(gateway, { event: 'created', secret, payload })).body.status).toBe('ok');
});

test('step 6: unprovisioned, wrong and revoked are one 401', async () => {
  const gateway = await startGateway();
  const unprovisioned = await deliver(gateway, { event: 'plain', secret: 'x' });
  const secret = await provision(gateway, 'plain');
  const wrong = await deliver(gateway, { event: 'plain', secret: `${secret}x` });
  const { revokeWebhook } = await import('../../../src/contracts/index.ts');
  await gateway.call(revokeWebhook, { params: { pluginId: '@acme/orders', event: 'plain' } as never });
  const revoked = await deliver(gateway, { event: 'plain', secret });
  for (const { status, body } of [unprovisioned, wrong, revoked]) {
    expect(status).toBe(401);
    expect(body).toEqual(unprovisioned.body);
  }
  const reasons = gateway.logs.lines
    .filter((line) => line.event === 'webhook.authentication_failed')
    .map((line) => line.reasonCode);
  expect(reasons).toEqual(['UNPROVISIONED', 'MISMATCH', 'UNPROVISIONED']);
  expect(JSON.stringify(gateway.logs.lines)).not.toContain(secret);
});

test('the secret of one instance is refused on the route of another, whatever characters the ids contain', async () => {
  const gateway = await startGateway();
  const ids = ['a', 'b/c', 'ünï ☃', '...', '%2F', 'a?b#c'];
  const secrets = await Promise.all(ids.map((id) => provision(gateway, 'shop', id)));
  for (const [i, instance] of ids.entries()) {
    const own = await deliver(gateway, { event: 'shop', instance, secret: secrets[i]! });
    expect([instance, own.status, own.body.result?.context.instanceId]).toEqual([instance, 200, instance]);
    const foreign = await deliver(gateway, {
      event: 'shop',
      instance,
      secret: secrets[(i + 1) % ids.length]!,
    });
    expect([instance, foreign.status]).toEqual([instance, 401]);
  }
});

test('step 7: the handler gets the payload and the context of the spec, and its result is the answer', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'created');
  const payload = { delivery: { id: 1 }, n: 5, nested: { deep: [1, 2] } };
  const { status, body, headers } = await deliver(gateway, { event: 'created', secret, payload });
  expect(status).toBe(200);
  expect(body).toEqual({
    status: 'ok',
    webhookId: expect.stringMatching(UUID),
    result: {
      saw: payload,
      context: {
        host: 'webhook',
        event: 'created',
        namespaceId: 'default',
        webhookId: body.webhookId,
        source: '127.0.0.1',
        payload,
        method: 'POST',
        path: '/webhooks/%40acme%2Forders/created',
        query: {},
        headers: expect.objectContaining({
          'content-type': 'application/json',
          'x-svc-namespace': 'default',
        }),
      },
    },
  });
  expect(headers.get('x-webhook-id')).toBe(body.webhookId);
});

test('a handler failure is 500 with its code, a throw an EXECUTION_ERROR, and the redelivery runs', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'created');
  const failed = await deliver(gateway, {
    event: 'created',
    secret,
    payload: { do: 'fail', delivery: { id: 1 } },
  });
  expect([failed.status, failed.body]).toEqual([
    500,
    { error: { code: 'OUT_OF_STOCK', message: 'Nothing left', details: { sku: 'a-1' } } },
  ]);
  const threw = await deliver(gateway, {
    event: 'created',
    secret,
    payload: { do: 'throw', delivery: { id: 1 } },
  });
  expect([threw.status, threw.body.error.code]).toEqual([500, 'EXECUTION_ERROR']);
  expect(JSON.stringify(threw.body)).not.toContain('the handler threw');
  expect(
    (await deliver(gateway, { event: 'created', secret, payload: { delivery: { id: 1 } } })).body.status,
  ).toBe('ok');
  expect(handlerRuns(gateway)).toBe(3);
});

test.each(['throw', 'throw later', 'reject unseen'])(
  'the sender gets no details of a failing handler: %s',
  async (how) => {
    const gateway = await startGateway();
    const secret = await provision(gateway, 'created');
    const { status, body } = await deliver(gateway, { event: 'created', secret, payload: { do: how } });
    expect([status, body]).toEqual([
      500,
      {
        error: {
          code: 'EXECUTION_ERROR',
          message: 'The handler of this webhook failed; the operator finds the reason by the webhookId.',
          details: { webhookId: expect.any(String) },
        },
      },
    ]);
    expect(JSON.stringify(gateway.logs.lines)).toContain('the handler threw');
  },
);

test('of 50 identical concurrent deliveries, one runs and 49 are duplicates', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'created');
  const payload = { delivery: { id: 'same' }, sleepMs: 100 };
  const replies = await Promise.all(
    Array.from({ length: 50 }, () => deliver(gateway, { event: 'created', secret, payload })),
  );
  expect(replies.map(({ status }) => status)).toEqual(Array(50).fill(200));
  expect(replies.filter(({ body }) => body.status === 'ok')).toHaveLength(1);
  expect(replies.filter(({ body }) => body.status === 'duplicate')).toHaveLength(49);
  expect(handlerRuns(gateway)).toBe(1);
});

test('when the winner of a race fails, a waiting delivery runs', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'created');
  const send = (extra: object) =>
    deliver(gateway, { event: 'created', secret, payload: { delivery: { id: 'r' }, ...extra } });
  const winner = send({ do: 'fail', sleepMs: 300 });
  await eventually(() => expect(handlerRuns(gateway)).toBe(1));
  const loser = send({});
  expect((await winner).status).toBe(500);
  expect((await loser).body.status).toBe('ok');
});

test('async: 202 with the id at once, the handler runs afterwards; a failure is logged, not retried', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'later');
  const send = (id: string, payload: object) =>
    deliver(gateway, { event: 'later', secret, payload, headers: { 'x-delivery': id } });
  const accepted = await send('1', { sleepMs: 200 });
  expect([accepted.status, accepted.body]).toEqual([
    202,
    { status: 'accepted', webhookId: expect.stringMatching(UUID) },
  ]);
  await eventually(() => expect(handlerRuns(gateway)).toBe(1));
  expect((await send('1', {})).body).toEqual({ status: 'duplicate' });

  expect((await send('2', { do: 'throw' })).status).toBe(202);
  await eventually(() =>
    expect(gateway.logs.lines.some((line) => String(line.message).includes('the handler threw'))).toBe(true),
  );
  expect(handlerRuns(gateway)).toBe(2);
});

test('async: a failure returned by the handler is logged with its code, like a thrown one', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'later');
  const { body } = await deliver(gateway, { event: 'later', secret, payload: { do: 'fail' } });
  const failures = () => gateway.logs.lines.filter((line) => line.level === 'error');
  await eventually(() => expect(failures()).toHaveLength(1));
  expect(failures()[0]).toMatchObject({
    message: 'The handler of @acme/orders later returned a failure: OUT_OF_STOCK: Nothing left',
    pluginId: '@acme/orders',
    tenantId: 'default',
    meta: { webhookId: body.webhookId, code: 'OUT_OF_STOCK', exitCode: 1, mode: 'async' },
  });
});

test('an accepted delivery that was not dispatched is dispatched at the next start of the gateway', async () => {
  const first = await startGateway({ config: { execution: { worker: { maxProcesses: 1 } } } });
  const secret = await provision(first, 'later');
  const send = (n: number) =>
    deliver(first, {
      event: 'later',
      secret,
      payload: { n, sleepMs: 150 },
      headers: { 'x-delivery': `d${n}` },
    });
  const replies = await Promise.all(Array.from({ length: 12 }, (_, n) => send(n)));
  expect(replies.map(({ status }) => status)).toEqual(Array(12).fill(202));
  await first.close();
  const before = handlerRuns(first);
  expect(before).toBeLessThan(12);

  const second = await startGateway({ dataDir: first.dataDir, clock: first.clock });
  await eventually(() => expect(handlerRuns(second)).toBe(12 - before));
  const runs = [...first.logs.lines, ...second.logs.lines]
    .filter((line) => line.message === 'handled')
    .map((line) => (line.meta as { run: number }).run);
  expect(runs.sort((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, n) => n));
});

test('secrets and markers survive a restart', async () => {
  const first = await startGateway();
  const secret = await provision(first, 'created');
  const payload = { delivery: { id: 'k' } };
  expect((await deliver(first, { event: 'created', secret, payload })).body.status).toBe('ok');
  await first.close();
  const second = await startGateway({ dataDir: first.dataDir, clock: first.clock });
  expect((await deliver(second, { event: 'created', secret, payload })).body.status).toBe('duplicate');
  expect(
    (await deliver(second, { event: 'created', secret, payload: { delivery: { id: 'l' } } })).body.status,
  ).toBe('ok');
});

test('a body that is not UTF-8 is invalid JSON: it is neither altered, nor can two ids become one', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'created');
  for (const letter of ['é', 'è']) {
    const body = Buffer.from(`{"delivery":{"id":"${letter}"}}`, 'latin1');
    expect((await deliver(gateway, { event: 'created', secret: 'wrong', body })).status).toBe(401);
    const refused = await deliver(gateway, { event: 'created', secret, body });
    expect([refused.status, refused.body.error.message]).toEqual([400, expect.stringContaining('not UTF-8')]);
  }
});

test('bad JSON is authenticated first, then 400', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'created');
  for (const body of ['{"a":', '', 'nope', `${'['.repeat(600)}${']'.repeat(600)}`]) {
    expect((await deliver(gateway, { event: 'created', body })).status).toBe(401);
    const signed = await deliver(gateway, { event: 'created', secret, body });
    expect([signed.status, signed.body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
  }
  expect(handlerRuns(gateway)).toBe(0);
});

test('the signature covers the bytes as sent: a re-serialised body is refused', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'created');
  const spaced = '{ "delivery": { "id": "ws" } }';
  const { createHmac } = await import('node:crypto');
  const compact = createHmac('sha256', secret)
    .update(JSON.stringify(JSON.parse(spaced)))
    .digest('hex');
  const wrong = await deliver(gateway, {
    event: 'created',
    body: spaced,
    headers: { 'x-signature': `sha256=${compact}` },
  });
  expect(wrong.status).toBe(401);
  expect((await deliver(gateway, { event: 'created', secret, body: spaced })).status).toBe(200);
});

test('a compressed body is 415', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'plain');
  const { status, body } = await deliver(gateway, {
    event: 'plain',
    secret,
    headers: { 'content-encoding': 'gzip' },
  });
  expect([status, body.error.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
  for (const none of ['', 'identity'])
    expect(
      (await deliver(gateway, { event: 'plain', secret, headers: { 'content-encoding': none } })).status,
    ).toBe(200);
});

test('a body over maxBodyBytes is 413 and the connection is closed, with or without a declared length', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'small');
  const exact = JSON.stringify({ pad: 'x'.repeat(100 - 10) });
  expect(exact).toHaveLength(100);
  expect((await deliver(gateway, { event: 'small', secret, body: exact })).status).toBe(200);
  const announced = await deliver(gateway, { event: 'small', secret, body: 'x'.repeat(3_000_000) });
  expect([announced.status, announced.body.error.code, announced.headers.get('connection')]).toEqual([
    413,
    'PAYLOAD_TOO_LARGE',
    'close',
  ]);
  const chunked = await new Promise<number>((resolve, reject) => {
    const sending = request(
      `${gateway.url}/webhooks/%40acme%2Forders/small`,
      { method: 'POST', headers: { 'x-svc-namespace': 'default', 'transfer-encoding': 'chunked' } },
      (response) => resolve(response.statusCode ?? 0),
    );
    sending.on('error', reject);
    for (let i = 0; i < 5; i++) sending.write('x'.repeat(50));
    sending.end();
  });
  expect(chunked).toBe(413);
});

test('a body in chunks of one byte arrives complete', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'plain');
  const text = JSON.stringify({ pad: Array.from({ length: 300 }, (_, n) => n) });
  const chunks = [...text].map((char) => `1\r\n${char}\r\n`).join('');
  const head = `POST /webhooks/%40acme%2Forders/plain HTTP/1.1\r\nHost: a\r\nX-Svc-Namespace: default\r\nX-Token: ${secret}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`;
  const answer = await new Promise<string>((resolve, reject) => {
    const socket = connect(gateway.port, '127.0.0.1', () => socket.write(`${head}${chunks}0\r\n\r\n`));
    let received = '';
    socket.on('data', (piece) => (received += piece));
    socket.on('close', () => resolve(received));
    socket.on('error', reject);
  });
  expect(answer).toContain('HTTP/1.1 200');
  expect(answer).toContain(`"saw":${text}`);
});

test('webhooks are delivered with POST alone', async () => {
  const gateway = await startGateway();
  for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    const response = await gateway.fetch('/webhooks/%40acme%2Forders/plain', { method });
    expect([method, response.status, response.headers.get('allow')]).toEqual([method, 405, 'POST']);
  }
});

test('custom: only an explicit true of the validator is valid, and the previous secret is tried in its grace period', async () => {
  const gateway = await startGateway();
  expect((await deliver(gateway, { event: 'checked', secret: 'x' })).status).toBe(401);
  const first = await provision(gateway, 'checked');
  expect((await deliver(gateway, { event: 'checked', secret: first })).status).toBe(200);
  const second = await provision(gateway, 'checked');
  const statusOf = async (secret: string, payload = {}) =>
    (await deliver(gateway, { event: 'checked', secret, payload })).status;
  expect([await statusOf(first), await statusOf(second), await statusOf('no')]).toEqual([200, 200, 401]);
  expect(await statusOf(second, { validator: 'throw' })).toBe(401);
  expect(await statusOf(second, { validator: 'truthy' })).toBe(401);
});

test('onProvision runs after provisioning and rotation; its failure is logged and the secret kept', async () => {
  const gateway = await startGateway();
  await provision(gateway, 'announced');
  const rotated = await provision(gateway, 'announced');
  const announced = gateway.logs.lines
    .filter((line) => line.message === 'announced')
    .map((line) => line.meta);
  expect(announced).toMatchObject([{ rotated: false }, { rotated: true }]);
  expect(gateway.logs.lines.some((line) => String(line.message).includes('the secret is kept'))).toBe(true);
  expect((await deliver(gateway, { event: 'announced', secret: rotated })).status).toBe(200);
});

test('a member of the namespace may provision; its deliveries belong to that namespace', async () => {
  const gateway = await startGateway();
  const secret = await provision(gateway, 'plain', undefined, MEMBER_TOKEN);
  expect((await deliver(gateway, { event: 'plain', secret })).status).toBe(200);
  expect((await deliver(gateway, { event: 'plain', secret, namespace: 'other' })).status).toBe(401);
});

test('a clock jump neither expires an id, nor locks a sender out, nor restores a revoked secret', async () => {
  const gateway = await startGateway();
  const first = await provision(gateway, 'created');
  const send = async (secret: string, id: string) => {
    const { status, body } = await deliver(gateway, {
      event: 'created',
      secret,
      payload: { delivery: { id } },
    });
    return `${status} ${body.status ?? body.error.code}`;
  };
  const start = gateway.clock.now();
  expect(await send(first, 'a')).toBe('200 ok');
  gateway.clock.jump(start - days(1));
  expect(await send(first, 'a')).toBe('200 duplicate');
  expect(await send(first, 'b')).toBe('200 ok');
  const second = await provision(gateway, 'created');
  gateway.clock.jump(start + days(6));
  expect(await send(first, 'c')).toBe('401 UNAUTHORIZED');
  expect(await send(second, 'a')).toBe('200 duplicate');
  gateway.clock.jump(start + days(8));
  expect(await send(second, 'a')).toBe('200 ok');
});
