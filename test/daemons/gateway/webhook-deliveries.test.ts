import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import {
  listDeliveries,
  mintToken,
  pauseWebhook,
  provisionWebhook,
  replayDeliveries,
  replayDelivery,
  resumeWebhook,
  revokeToken,
  sendSample,
} from '../../../src/contracts/index.ts';
import { hours, minutes, seconds } from '../../../src/kit/time/duration.ts';
import type { AnyJson } from '../../support/any-json.ts';
import { ADMIN_TOKEN, MEMBER_TOKEN, OTHER_TOKEN } from '../../support/gateway.ts';
import {
  details,
  eventually,
  runsOf,
  secretOf,
  send,
  startSenders,
  statuses,
} from '../../support/webhook-senders.ts';

test('every delivery is recorded, refused ones too, and other namespaces see no record', async () => {
  const gateway = await startSenders();
  const secret = await secretOf(gateway, 'sync');
  const ok = await send(gateway, 'sync', secret, { id: 'a', n: 1 });
  await send(gateway, 'sync', secret, { id: 'a', n: 1 });
  await send(gateway, 'sync', 'wrong', { id: 'b' });
  await send(gateway, 'sync', secret, { id: 'c', do: 'fail' });
  // Notes of what no handler saw are written a moment after the answer.
  expect((await statuses(gateway)).toSorted()).toEqual([
    'duplicate sync',
    'failed sync',
    'refused sync',
    'succeeded sync',
  ]);
  expect(await statuses(gateway, { status: 'refused' })).toEqual(['refused sync']);
  expect(await statuses(gateway, { search: '"n":1' })).toEqual(['succeeded sync']);
  expect(await statuses(gateway, { event: 'queued' })).toEqual([]);
  expect(await statuses(gateway, { since: new Date(gateway.clock.now() + 1).toISOString() })).toEqual([]);
  await expect(statuses(gateway, { since: '' })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });

  const id = ok.headers.get('x-webhook-id')!;
  const record = await details(gateway, id, MEMBER_TOKEN);
  expect(record).toMatchObject({
    webhookId: id,
    status: 'succeeded',
    httpStatus: 200,
    mode: 'sync',
    origin: 'sender',
    body: '{"id":"a","n":1}',
    outcome: { result: { event: 'sync' } },
    explanation: null,
  });
  expect(record.steps.map(({ step, outcome }) => `${step}: ${outcome}`)).toEqual([
    'route: ok',
    'namespace: ok',
    'rate_limit: ok',
    'body: ok',
    'idempotency: new',
    'authentication: ok (current)',
    'dispatch: succeeded',
  ]);
  expect(record.steps.every(({ durationMs }) => durationMs >= 0)).toBe(true);
  expect(Object.fromEntries(record.headers)).toMatchObject({
    host: `127.0.0.1:${gateway.port}`,
    'x-token': '[masked]',
    'content-type': 'application/json',
  });
  expect(JSON.stringify(record)).not.toContain(secret);
  await expect(details(gateway, id, OTHER_TOKEN)).rejects.toMatchObject({
    code: 'DELIVERY_NOT_FOUND',
    status: 404,
  });
  expect((await gateway.call(listDeliveries, {}, OTHER_TOKEN)).items).toEqual([]);
  await expect(details(gateway, 'no-uuid')).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
});

test('the record of an async delivery has its receipt and each run of its handler', async () => {
  const gateway = await startSenders();
  const secret = await secretOf(gateway, 'retried');
  const { body } = await send(gateway, 'retried', secret, { n: 'steps', failTimes: 1 });
  const stepsAre = (status: string, steps: string[]) =>
    eventually(async () => {
      const record = await details(gateway, body.webhookId);
      const seen = record.steps.map(({ step, outcome }) => `${step}: ${outcome}`);
      expect([record.status, seen]).toEqual([status, [...RECEIVED, ...steps]]);
    });
  await stepsAre('retrying', ['dispatch: retrying']);
  gateway.clock.advance(seconds(1));
  await stepsAre('succeeded', ['dispatch: retrying', 'dispatch: succeeded']);
});

const RECEIVED = [
  'route: ok',
  'namespace: ok',
  'rate_limit: ok',
  'body: ok',
  'authentication: ok (current)',
  'dispatch: accepted',
];

test('lists continue after their cursor', async () => {
  const gateway = await startSenders();
  const secret = await secretOf(gateway, 'queued');
  for (let n = 0; n < 5; n++) await send(gateway, 'queued', secret, { id: `q${n}`, n });
  const seen: string[] = [];
  for (let cursor: string | null = null; ; ) {
    const page: { items: { webhookId: string }[]; nextCursor: string | null } = await gateway.call(
      listDeliveries,
      {
        query: { limit: 2, ...(cursor ? { cursor } : {}) },
      },
    );
    seen.push(...page.items.map(({ webhookId }) => webhookId));
    if (page.nextCursor === null) break;
    cursor = page.nextCursor;
  }
  expect(new Set(seen).size).toBe(5);
  await expect(gateway.call(listDeliveries, { query: { cursor: 'x' } })).rejects.toMatchObject({
    status: 400,
  });
});

const SIGNED_BODY = '{ "a": 1,\n "b": [true, "é"] }';
const hmac = (secret: string, body: string) => createHmac('sha256', secret).update(body).digest();

test.each<[string, (secret: string) => string, string]>([
  ['another secret', () => `sha256=${hmac('x', SIGNED_BODY).toString('hex')}`, 'wrong_secret'],
  ['base64 for hex', (s) => `sha256=${hmac(s, SIGNED_BODY).toString('base64')}`, 'other_encoding'],
  ['capitals', (s) => `sha256=${hmac(s, SIGNED_BODY).toString('hex').toUpperCase()}`, 'other_encoding'],
  ['no prefix', (s) => hmac(s, SIGNED_BODY).toString('hex'), 'other_encoding'],
  [
    'compact JSON',
    (s) => `sha256=${hmac(s, JSON.stringify(JSON.parse(SIGNED_BODY))).toString('hex')}`,
    'reserialised_json',
  ],
  [
    'indented JSON',
    (s) => `sha256=${hmac(s, JSON.stringify(JSON.parse(SIGNED_BODY), null, 2)).toString('hex')}`,
    'reserialised_json',
  ],
  [
    "Python's JSON",
    (s) => `sha256=${hmac(s, '{"a": 1, "b": [true, "é"]}').toString('hex')}`,
    'reserialised_json',
  ],
  [
    'a newline in the secret',
    (s) => `sha256=${hmac(`${s}\n`, SIGNED_BODY).toString('hex')}`,
    'trailing_newline',
  ],
  [
    'a newline after the body',
    (s) => `sha256=${hmac(s, `${SIGNED_BODY}\n`).toString('hex')}`,
    'body_newline',
  ],
  ['no signature', () => '', 'prefix_missing'],
])('a 401 for %s gives the reason to the operator only', async (_what, sign, reason) => {
  const gateway = await startSenders();
  const secret = await secretOf(gateway, 'signed');
  const headers = { 'x-signature': sign(secret) };
  const reply = await send(gateway, 'signed', '', null, { body: SIGNED_BODY, headers });
  expect([reply.status, reply.body.error.message]).toEqual([
    401,
    'The delivery is not authentic: check the secret and how it is sent.',
  ]);
  const { explanation, body, bodyBytes, status } = await details(gateway, reply.headers.get('x-webhook-id')!);
  expect([status, explanation?.reason, body, bodyBytes]).toEqual([
    ...['refused', reason, SIGNED_BODY],
    Buffer.byteLength(SIGNED_BODY),
  ]);
  expect(explanation?.hint).not.toContain(secret);
});

test('a 401 for clock skew names the seconds, one for an expired secret names the expiry', async () => {
  const gateway = await startSenders();
  const former = await secretOf(gateway, 'slack');
  const timestamp = gateway.clock.now() / 1000 - 400;
  const slack = (secret: string, at: number) => ({
    'x-slack-request-timestamp': String(at),
    'x-slack-signature': `v0=${hmac(secret, `v0:${at}:{}`).toString('hex')}`,
  });
  const explained = async (headers: Record<string, string>) => {
    const reply = await send(gateway, 'slack', '', null, { body: '{}', headers });
    return (await details(gateway, reply.headers.get('x-webhook-id')!)).explanation;
  };
  expect(await explained(slack(former, timestamp))).toMatchObject({ reason: 'clock_skew', skewSeconds: 400 });
  expect(await explained({})).toMatchObject({ reason: 'header_missing' });

  await gateway.call(provisionWebhook, {
    body: { pluginId: 'senders', event: 'slack', generate: true } as never,
  });
  gateway.clock.advance(hours(24));
  expect(await explained(slack(former, gateway.clock.now() / 1000))).toMatchObject({
    reason: 'previous_secret_expired',
  });
});

test('a failed delivery can be replayed, after which its redelivery is a duplicate', async () => {
  const gateway = await startSenders();
  const secret = await secretOf(gateway, 'sync');
  const failed = await send(gateway, 'sync', secret, { id: 'r', n: 'r', failTimes: 1 });
  expect(failed.status).toBe(500);
  const original = failed.headers.get('x-webhook-id')!;
  const again = await gateway.call(replayDelivery, { params: { webhookId: original } });
  expect(again.replayOf).toBe(original);
  await eventually(async () =>
    expect(await details(gateway, again.webhookId)).toMatchObject({
      status: 'succeeded',
      origin: 'replay',
      replayOf: original,
      body: '{"id":"r","n":"r","failTimes":1}',
    }),
  );
  expect(await details(gateway, original)).toMatchObject({ status: 'failed', replayedBy: again.webhookId });
  await eventually(async () =>
    expect((await send(gateway, 'sync', secret, { id: 'r', n: 'r', failTimes: 1 })).body).toEqual({
      status: 'duplicate',
    }),
  );
  expect(runsOf(gateway, 'handled')).toEqual(['r', 'r']);
});

test('deliveries that reached no handler, or of another namespace, cannot be replayed', async () => {
  const gateway = await startSenders();
  await secretOf(gateway, 'sync');
  const refused = await send(gateway, 'sync', 'wrong', {});
  const webhookId = refused.headers.get('x-webhook-id')!;
  await expect(gateway.call(replayDelivery, { params: { webhookId } })).rejects.toMatchObject({
    code: 'CONFLICT',
  });
  await expect(gateway.call(replayDelivery, { params: { webhookId } }, OTHER_TOKEN)).rejects.toMatchObject({
    status: 404,
  });
});

test('a bulk replay runs failed deliveries, oldest first, and skips those handled meanwhile', async () => {
  const gateway = await startSenders();
  const secret = await secretOf(gateway, 'sync');
  await send(gateway, 'sync', secret, { id: 'old', n: 'old', failTimes: 1 });
  gateway.clock.advance(hours(2));
  const since = gateway.clock.now();
  for (const n of ['a', 'b', 'c']) await send(gateway, 'sync', secret, { id: n, n, failTimes: 1 });
  // The sender of b tries again by itself.
  expect((await send(gateway, 'sync', secret, { id: 'b', n: 'b', failTimes: 1 })).status).toBe(200);
  const first = await gateway.call(replayDeliveries, { body: { status: 'failed', since } });
  expect([first.items.length, first.skipped, first.more]).toEqual([2, 1, false]);
  await eventually(() => expect(runsOf(gateway, 'done').toSorted()).toEqual(['a', 'b', 'c']));
  const second = await gateway.call(replayDeliveries, { body: { status: 'failed', since } });
  expect([second.items.length, second.skipped]).toEqual([0, 3]);
  const limited = await gateway.call(replayDeliveries, { body: { since: 0, limit: 1 } });
  expect(limited.items.map(({ replayOf }) => replayOf)).toHaveLength(1);
  await eventually(() => expect(runsOf(gateway, 'done')).toContain('old'));
});

test('concurrent bulk replays replay each delivery once', async () => {
  const gateway = await startSenders();
  const secret = await secretOf(gateway, 'sync');
  const ns = Array.from({ length: 20 }, (_, i) => `n${i}`);
  for (const n of ns) await send(gateway, 'sync', secret, { id: n, n, failTimes: 1 });
  const replies = await Promise.all(
    Array.from({ length: 4 }, () => gateway.call(replayDeliveries, { body: { status: 'failed', since: 0 } })),
  );
  const replayed = replies.flatMap(({ items }) => items.map(({ replayOf }) => replayOf));
  expect([replayed.length, new Set(replayed).size]).toEqual([20, 20]);
  expect(replies.reduce((sum, { skipped }) => sum + skipped, 0)).toBe(60);
  await eventually(() => expect(runsOf(gateway, 'done').toSorted()).toEqual(ns.toSorted()));
});

test('a bulk replay requires a start time', async () => {
  const gateway = await startSenders();
  await expect(gateway.call(replayDeliveries, { body: { since: null } as never })).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
    message: expect.stringContaining('body.since: must be epoch milliseconds or an ISO 8601'),
  });
});

test.each(['github', 'stripe', 'slack', 'shopify', 'standard-webhooks', 'sync', 'signed'])(
  'send signs a sample as %s does, and it passes every step',
  async (event) => {
    const gateway = await startSenders();
    await secretOf(gateway, event);
    const body = { pluginId: 'senders', event, data: { n: 'mine' } } as never;
    const sent = await gateway.call(sendSample, { body });
    expect(sent).toMatchObject({
      status: 200,
      body: { status: 'ok', result: { event, saw: { n: 'mine' } } },
    });
    expect(await details(gateway, sent.webhookId)).toMatchObject({ origin: 'sample', status: 'succeeded' });
  },
);

test('send uses the sample of the manifest, refuses what it cannot sign, and shows the answer to the sender', async () => {
  const gateway = await startSenders();
  const call = (body: object) =>
    gateway
      .call(sendSample, { body: { pluginId: 'senders', ...body } as never })
      .catch((error) => `${error.status} ${error.code}`);
  expect(await call({ event: 'github' })).toBe('409 CONFLICT');
  await secretOf(gateway, 'github');
  expect(await call({ event: 'github' })).toMatchObject({
    status: 200,
    body: { result: { saw: { hello: 'world' } } },
  });
  // Whatever the case of its name, a header that the signature brings is the signature's.
  const headers = { 'X-Hub-Signature-256': 'mine', 'X-GitHub-Event': 'push' };
  expect(await call({ event: 'github', headers })).toMatchObject({ status: 200 });
  await secretOf(gateway, 'sync');
  expect(await call({ event: 'sync' })).toBe('400 VALIDATION_ERROR');
  expect(await call({ event: 'sync', data: { do: 'fail' } })).toMatchObject({ status: 500 });
  expect(await call({ event: 'nothing', data: 1 })).toBe('404 WEBHOOK_NOT_FOUND');
});

test('a paused sync webhook answers with Retry-After; a paused async one queues, and runs in order on resume', async () => {
  const gateway = await startSenders();
  const [sync, queued] = [await secretOf(gateway, 'sync'), await secretOf(gateway, 'narrow')];
  const target = (event: string) => ({ body: { pluginId: 'senders', event } as never });
  expect(await gateway.call(pauseWebhook, target('sync'))).toEqual({ paused: true, holds: false });
  expect(await gateway.call(pauseWebhook, target('narrow'))).toEqual({ paused: true, holds: true });
  const refused = await send(gateway, 'sync', sync, { id: 1 });
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '60']);
  expect((await send(gateway, 'sync', 'wrong', {})).status).toBe(401);
  for (let n = 0; n < 5; n++) expect((await send(gateway, 'narrow', queued, { n })).status).toBe(202);
  expect(await statuses(gateway, { status: 'accepted' })).toHaveLength(5);
  expect(runsOf(gateway, 'handled')).toEqual([]);
  await gateway.close();

  const next = await startSenders({ dataDir: gateway.dataDir, clock: gateway.clock });
  expect(await statuses(next, { status: 'accepted' })).toHaveLength(5);
  expect(await next.call(resumeWebhook, target('narrow'))).toEqual({ paused: false });
  await eventually(() => expect(runsOf(next, 'done')).toEqual([0, 1, 2, 3, 4]));
  expect((await send(next, 'sync', sync, { id: 1 })).status).toBe(503);
  await next.call(resumeWebhook, target('sync'));
  expect((await send(next, 'sync', sync, { id: 1 })).status).toBe(200);
});

interface Told {
  id: string;
  event: string;
  data: AnyJson;
}

/** Reads the stream until `enough` says so. */
async function readStream(
  url: string,
  enough: (told: Told[]) => boolean,
  cursor?: string,
  token = ADMIN_TOKEN,
): Promise<Told[]> {
  const stop = new AbortController();
  const told: Told[] = [];
  const response = await fetch(
    `${url}/api/v1/webhooks/deliveries/stream${cursor ? `?cursor=${cursor}` : ''}`,
    {
      headers: { authorization: `Bearer ${token}` },
      signal: stop.signal,
    },
  );
  expect(response.headers.get('content-type')).toContain('text/event-stream');
  let text = '';
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const parts = text.split('\n\n');
    text = parts.pop()!;
    for (const part of parts) {
      const [, id = ''] = /^id: (.*)$/m.exec(part) ?? [];
      const [, event = ''] = /^event: (.*)$/m.exec(part) ?? [];
      const [, data = '{}'] = /^data: (.*)$/m.exec(part) ?? [];
      told.push({ id, event, data: JSON.parse(data) });
    }
    if (enough(told)) break;
  }
  stop.abort();
  return told;
}

test('the stream reports receipt and end of deliveries, and resumes after its last event, over a restart too', async () => {
  const gateway = await startSenders();
  const [secret, other] = [await secretOf(gateway, 'queued'), await secretOf(gateway, 'queued', OTHER_TOKEN)];
  const first = readStream(gateway.url, (told) =>
    told.some(({ event, data }) => event === 'ended' && data.status === 'succeeded'),
  );
  await new Promise((resolve) => setTimeout(resolve, 300));
  await send(gateway, 'queued', other, { id: 'x' }, { namespace: 'other' });
  await send(gateway, 'queued', secret, { id: 's1', n: 1, sleepMs: 600 });
  const told = await first;
  const kinds = told.map(({ event, data }) => `${event} ${data.status ?? ''}`.trim());
  expect(kinds).toEqual(['hello', 'delivery accepted', 'ended succeeded']);
  expect(told[1]!.data).toMatchObject({ event: 'queued', body: '{"id":"s1","n":1,"sleepMs":600}' });

  await send(gateway, 'queued', secret, { id: 's2', n: 2 });
  await eventually(() => expect(runsOf(gateway, 'done')).toEqual(expect.arrayContaining([1, 2])));
  await gateway.close();
  const next = await startSenders({ dataDir: gateway.dataDir, clock: gateway.clock });
  // From the first event on: the end of the first delivery is told, then the second.
  const resumed = await readStream(next.url, (all) => all.length >= 3, told[1]!.id);
  expect(resumed.slice(1).map(({ event, data }) => `${event} ${data.body}`)).toEqual([
    'ended {"id":"s1","n":1,"sleepMs":600}',
    'delivery {"id":"s2","n":2}',
  ]);
  const after = await readStream(next.url, (all) => all.length >= 2, told[2]!.id);
  expect(after[1]!.data.body).toBe('{"id":"s2","n":2}');
  const refused = await next.fetch('/api/v1/webhooks/deliveries/stream?cursor=1.x', {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  expect(refused.status).toBe(400);
  expect((await next.fetch('/api/v1/webhooks/deliveries/stream')).status).toBe(401);
});

test('a stream ends when its token expires or is revoked', async () => {
  const gateway = await startSenders();
  const mint = async (ttlSeconds: number) =>
    gateway.call(mintToken, { body: { hostId: 'reader', namespaceId: 'default', ttlSeconds } as never });
  const [revoked, expired] = [await mint(3600), await mint(60)];
  const open = new Set<string>();
  const ends = [revoked, expired].map(({ token }) =>
    readStream(gateway.url, () => !open.add(token), undefined, token),
  );
  await eventually(() => expect(open.size).toBe(2));
  await gateway.call(revokeToken, { params: { jti: revoked.jti } });
  const ended = [
    expect.objectContaining({ event: 'hello' }),
    expect.objectContaining({
      event: 'error',
      data: { error: expect.objectContaining({ code: 'UNAUTHORIZED' }) },
    }),
  ];
  expect(await ends[0]).toEqual(ended);
  gateway.clock.advance(minutes(2));
  expect(await ends[1]).toEqual(ended);
});

test('provisioning: a given secret never appears in lists or records', async () => {
  const gateway = await startSenders();
  await gateway.call(provisionWebhook, {
    body: { pluginId: 'senders', event: 'sync', secret: 'given-by-provider' } as never,
  });
  const reply = await send(gateway, 'sync', 'given-by-provider', { id: 1, echo: 1 });
  expect(reply.status).toBe(200);
  expect(JSON.stringify(await details(gateway, reply.headers.get('x-webhook-id')!))).not.toContain(
    'given-by-provider',
  );
});

test('a search too short for the index is refused with a remedy, before any row is read', async () => {
  const gateway = await startSenders();
  const asked = (search: string) =>
    fetch(`${gateway.url}/api/v1/webhooks/deliveries?search=${encodeURIComponent(search)}`, {
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
  for (const search of ['', 'a', 'ab', 'ä']) {
    const reply = await asked(search);
    expect([search, reply.status]).toEqual([search, 400]);
    expect(await reply.json()).toMatchObject({
      error: { code: 'VALIDATION_ERROR', message: expect.stringContaining('at least 3 characters') },
    });
  }
  for (const search of ['abc', '三', 'äb']) expect((await asked(search)).status).toBe(200);
});
