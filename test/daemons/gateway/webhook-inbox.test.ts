import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { replayDelivery } from '../../../src/contracts/index.ts';
import { Queue } from '../../../src/daemons/gateway/domain/webhooks/dispatch/queue.ts';
import { days, hours, minutes } from '../../../src/kit/time/duration.ts';
import { checkManifest } from '../../../src/plugins/registry/manifest-file.ts';
import { fillDisk } from '../../support/full-disk.ts';
import { type DeliveryReply, OTHER_TOKEN, type TestGateway } from '../../support/gateway.ts';
import {
  details,
  eventually,
  runsOf,
  secretOf,
  send,
  startSenders,
  statuses,
} from '../../support/webhook-senders.ts';

const idOf = ({ headers }: { headers: Headers }): string => headers.get('x-webhook-id')!;
const journalOf = ({ dataDir }: TestGateway): string => join(dataDir, 'inbox', '0.log');
const statusOf = async (gateway: TestGateway, id: string) => (await details(gateway, id)).status;

test('a failed delivery is retried after its backoff, and is done when an attempt succeeds', async () => {
  const gateway = await startSenders();
  const secret = await secretOf(gateway, 'retried');
  const sent = await send(gateway, 'retried', secret, { n: 'r', failTimes: 2 });
  expect(sent.status).toBe(202);
  await eventually(async () => expect(await statusOf(gateway, idOf(sent))).toBe('retrying'));
  const { nextAttemptAt, attempts } = await details(gateway, idOf(sent));
  // A fifth of the backoff is left to chance.
  expect([attempts, nextAttemptAt! - gateway.clock.now()]).toEqual([
    1,
    expect.toSatisfy((ms) => ms >= 800 && ms <= 1000),
  ]);
  gateway.clock.advance(799);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(runsOf(gateway, 'handled')).toHaveLength(1);
  gateway.clock.advance(201);
  await eventually(() => expect(runsOf(gateway, 'handled')).toHaveLength(2));
  await eventually(async () => expect((await details(gateway, idOf(sent))).attempts).toBe(2));
  gateway.clock.advance(2000);
  await eventually(async () => expect(await statusOf(gateway, idOf(sent))).toBe('succeeded'));
  expect(await details(gateway, idOf(sent))).toMatchObject({
    attempts: 3,
    nextAttemptAt: null,
    reason: null,
    attemptHistory: [
      { outcome: 'retrying', error: 'NOT_NOW: Try again', durationMs: expect.any(Number) },
      { outcome: 'retrying', error: 'NOT_NOW: Try again' },
      { outcome: 'succeeded', error: null, startedAt: expect.stringMatching(/Z$/) },
    ],
  });
});

test('a backoff lasts no longer when the wall clock is set back an hour', async () => {
  const gateway = await startSenders();
  const secret = await secretOf(gateway, 'retried');
  const sent = await send(gateway, 'retried', secret, { n: 'b', failTimes: 2 });
  for (const attempts of [1, 2]) {
    await eventually(async () =>
      expect(await details(gateway, idOf(sent))).toMatchObject({ status: 'retrying', attempts }),
    );
    gateway.clock.jump(gateway.clock.now() - hours(1));
    gateway.clock.advance(attempts * 1000);
  }
  await eventually(async () => expect(await statusOf(gateway, idOf(sent))).toBe('succeeded'));
});

test('after its last failed attempt a delivery is dead and logged, and a replay starts again', async () => {
  const gateway = await startSenders();
  const secret = await secretOf(gateway, 'retried');
  const sent = await send(gateway, 'retried', secret, { n: 'd', failTimes: 3 });
  for (let attempt = 1; attempt <= 3; attempt++) {
    await eventually(async () => expect((await details(gateway, idOf(sent))).attempts).toBe(attempt));
    gateway.clock.advance(minutes(1));
  }
  expect(await details(gateway, idOf(sent))).toMatchObject({ status: 'dead', reason: 'NOT_NOW: Try again' });
  expect(gateway.logs.lines.filter((line) => line.event === 'webhook.delivery_dead')).toMatchObject([
    { level: 'error' },
  ]);
  gateway.clock.advance(days(1));
  expect(runsOf(gateway, 'handled')).toHaveLength(3);
  const again = await gateway.call(replayDelivery, { params: { webhookId: idOf(sent) } });
  await eventually(async () => expect(await statusOf(gateway, again.webhookId)).toBe('succeeded'));
});

test('a delivery that waits for a retry survives a restart', async () => {
  const first = await startSenders();
  const secret = await secretOf(first, 'retried');
  const sent = await send(first, 'retried', secret, { n: 'w', failTimes: 1 });
  await eventually(async () => expect(await statusOf(first, idOf(sent))).toBe('retrying'));
  await first.close();
  const second = await startSenders({ dataDir: first.dataDir, clock: first.clock });
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(runsOf(second, 'handled')).toEqual([]);
  second.clock.advance(1000);
  await eventually(() => expect(runsOf(second, 'handled')).toEqual(['w']));
});

test('concurrency 1 runs one delivery of a namespace at a time, in order of receipt', async () => {
  const gateway = await startSenders();
  const [secret, other] = [await secretOf(gateway, 'narrow'), await secretOf(gateway, 'narrow', OTHER_TOKEN)];
  for (let n = 0; n < 3; n++) await send(gateway, 'narrow', secret, { n, sleepMs: 150 });
  await send(gateway, 'narrow', other, { n: 'other' }, { namespace: 'other' });
  await eventually(() => expect(runsOf(gateway, 'done')).toHaveLength(4));
  const own = gateway.logs.lines
    .filter((line) => ['handled', 'done'].includes(String(line.message)))
    .map((line) => `${line.message} ${(line.meta as { run: unknown }).run}`)
    .filter((text) => !text.includes('other'));
  expect(own).toEqual(['handled 0', 'done 0', 'handled 1', 'done 1', 'handled 2', 'done 2']);
  // The other namespace did not wait for them.
  expect(runsOf(gateway, 'done').indexOf('other')).toBeLessThan(3);
});

test('orderBy: deliveries of one order run in sequence, also after a failed attempt; other orders proceed', async () => {
  const gateway = await startSenders();
  const secret = await secretOf(gateway, 'ordered');
  const of = (id: string, n: string, more = {}) =>
    send(gateway, 'ordered', secret, { n, customer: { id }, ...more });
  await of('c1', 'c1-a', { failTimes: 1 });
  await of('c1', 'c1-b');
  await of('c2', 'c2-a');
  await of('c1', 'c1-c');
  await eventually(() => expect(runsOf(gateway, 'done')).toEqual(['c2-a']));
  await eventually(async () => expect(await statuses(gateway, { status: 'retrying' })).toHaveLength(1));
  gateway.clock.advance(60);
  await eventually(() => expect(runsOf(gateway, 'done')).toEqual(['c2-a', 'c1-a', 'c1-b', 'c1-c']));
});

test('async-only settings are refused on a synchronous webhook, with their path', () => {
  const webhook = {
    event: 'x',
    handler: 'a.js#b',
    auth: { type: 'secret', header: 'x' },
    retry: { maxAttempts: 2 },
  };
  const { faults } = checkManifest({
    schema: 'svc.plugin/3',
    id: 'p',
    version: '1.0.0',
    webhooks: [webhook],
  });
  expect(faults).toMatchObject([
    { path: 'webhooks[0].retry', message: expect.stringContaining('"async": true') },
  ]);
});

test.runIf(process.platform === 'linux')(
  'a delivery that the store refuses is answered 503 with Retry-After, and accepted once the store recovers',
  async () => {
    const gateway = await startSenders();
    const [queued, sync] = [await secretOf(gateway, 'queued'), await secretOf(gateway, 'sync')];
    expect((await send(gateway, 'queued', queued, { id: 'first', n: 0 })).status).toBe(202);
    const giveRoom = fillDisk(journalOf(gateway));
    for (const [event, secret] of [
      ['queued', queued],
      ['sync', sync],
    ] as const) {
      const refused = await send(gateway, event, secret, { id: 'full' });
      expect([refused.status, refused.body.error.code, refused.headers.get('retry-after')]).toEqual([
        503,
        'SERVICE_UNAVAILABLE',
        '5',
      ]);
    }
    giveRoom();
    // The id was not marked as seen by the failure.
    expect((await send(gateway, 'queued', queued, { id: 'full', n: 1 })).status).toBe(202);
    expect((await send(gateway, 'sync', sync, { id: 'full', n: 2 })).status).toBe(200);
    await eventually(() => expect(runsOf(gateway, 'done').toSorted()).toEqual([0, 1, 2]));
  },
);

test.runIf(process.platform === 'linux')(
  'a delivery whose end cannot be stored is 503, and runs again on redelivery after the lease',
  async () => {
    const gateway = await startSenders();
    const secret = await secretOf(gateway, 'sync');
    const sent = send(gateway, 'sync', secret, { id: 'e', n: 'e', sleepMs: 500 });
    await eventually(() => expect(runsOf(gateway, 'handled')).toEqual(['e']));
    const giveRoom = fillDisk(journalOf(gateway));
    const refused = await sent;
    expect([refused.status, refused.body.error.code, refused.headers.get('retry-after')]).toEqual([
      503,
      'SERVICE_UNAVAILABLE',
      '5',
    ]);
    expect(runsOf(gateway, 'done')).toEqual(['e']);
    giveRoom();
    gateway.clock.advance(minutes(3));
    expect((await send(gateway, 'sync', secret, { id: 'e', n: 'e' })).body.status).toBe('ok');
    expect((await send(gateway, 'sync', secret, { id: 'e', n: 'e' })).body.status).toBe('duplicate');
  },
);

test('an address with repeated failures gets 429 unless authentic, only in its own namespace', async () => {
  const gateway = await startSenders();
  const [secret, other] = [await secretOf(gateway, 'sync'), await secretOf(gateway, 'sync', OTHER_TOKEN)];
  for (let i = 0; i < 120; i++) expect((await send(gateway, 'sync', 'wrong', { i })).status).toBe(401);
  const refused = await send(gateway, 'sync', 'wrong', { id: 'late' });
  expect([refused.status, refused.body.error.code]).toEqual([429, 'RATE_LIMIT_EXCEEDED']);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await send(gateway, 'sync', secret, { id: 'late' })).status).toBe(200);
  const elsewhere = (token: string) => send(gateway, 'sync', token, { id: 'o' }, { namespace: 'other' });
  expect([(await elsewhere('wrong')).status, (await elsewhere(other)).status]).toEqual([401, 200]);
  gateway.clock.advance(minutes(1));
  expect((await send(gateway, 'sync', 'wrong', { id: 'later' })).status).toBe(401);
});

test('records are pruned by age and size, and deliveries are accepted meanwhile', async () => {
  // An empty database takes about 830 kB, and one with these bodies more than 1.4 MB.
  const gateway = await startSenders({
    config: { retention: { deliveriesDays: 1, deliveriesMaxBytes: 1_100_000 } },
  });
  const secret = await secretOf(gateway, 'queued');
  const pad = 'x'.repeat(20_000);
  const sent: DeliveryReply[] = [];
  for (let n = 0; n < 30; n++) sent.push(await send(gateway, 'queued', secret, { id: `p${n}`, n, pad }));
  await eventually(() => expect(runsOf(gateway, 'done')).toHaveLength(30));
  await eventually(async () => expect(await statuses(gateway, { status: 'succeeded' })).toHaveLength(30));
  expect((await details(gateway, idOf(sent[0]!))).body).toContain(pad);
  // A list includes what is still in the journal alone, which the size limit does not.
  const disk = new Sqlite(join(gateway.dataDir, 'svc.db'), { readonly: true });
  const stored = disk.prepare("select count(*) as n from delivery where status = 'succeeded'");
  await eventually(() => expect(stored.get()).toEqual({ n: 30 }));
  disk.close();
  const sweep = (): void => gateway.clock.advance(minutes(1));
  sweep();
  const during = await send(gateway, 'queued', secret, { id: 'during', n: 'during' });
  expect(during.status).toBe(202);
  await eventually(async () =>
    expect(await details(gateway, idOf(sent[0]!))).toMatchObject({
      body: null,
      status: 'succeeded',
      bodyBytes: expect.any(Number),
    }),
  );
  gateway.clock.advance(days(1));
  await eventually(async () => {
    sweep();
    expect(await statuses(gateway)).toEqual([]);
  });
});

test('a sync delivery interrupted by a crash is listed as interrupted, and can be replayed', async () => {
  const first = await startSenders();
  const secret = await secretOf(first, 'sync');
  const ok = await send(first, 'sync', secret, { id: 'i', n: 'i' });
  await first.close();
  // What a kill -9 between the handler and its end leaves behind.
  const disk = new Sqlite(join(first.dataDir, 'svc.db'));
  disk.exec("update delivery set status = 'running', http_status = null, outcome = null, duration_ms = null");
  disk.close();
  const second = await startSenders({ dataDir: first.dataDir, clock: first.clock });
  await eventually(async () => expect(await statuses(second)).toEqual(['interrupted sync']));
  const again = await second.call(replayDelivery, { params: { webhookId: idOf(ok) } });
  await eventually(async () => expect(await statusOf(second, again.webhookId)).toBe('succeeded'));
});

describe('the queue', () => {
  interface Job {
    n: number;
    lane: string | undefined;
    order: string | undefined;
  }
  const LIMIT = 2;

  test('respects the limit of each lane, runs one delivery per order at a time in sequence, and loses none', () => {
    const job = fc.record({
      lane: fc.option(fc.constantFrom('a', 'b'), { nil: undefined }),
      order: fc.option(fc.constantFrom('x', 'y', 'z'), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(job, { maxLength: 40 }), fc.infiniteStream(fc.nat(3)), (jobs, chance) => {
        const queue = new Queue<Job>({
          bytesOf: () => 1,
          limitOf: ({ lane }) => (lane === undefined ? undefined : { name: lane, limit: LIMIT }),
          orderOf: ({ order }) => order,
        });
        const waiting = jobs.map((each, n) => ({ ...each, n }));
        const running: Job[] = [];
        const asleep: Job[] = [];
        const finished: Job[] = [];
        while (finished.length < jobs.length) {
          const what = chance.next().value;
          if (what === 0 && waiting.length > 0) queue.push(waiting.shift()!);
          else if (what === 1) {
            const taken = queue.take();
            if (taken) running.push(taken);
          } else if (what === 2 && running.length > 0) {
            const ended = running.splice(chance.next().value % running.length, 1)[0]!;
            const fails = chance.next().value === 0;
            queue.done(ended, { keepsOrder: fails });
            (fails ? asleep : finished).push(ended);
          } else if (asleep.length > 0) queue.release(asleep.shift()!);
          for (const lane of ['a', 'b'])
            expect(running.filter((each) => each.lane === lane).length).toBeLessThanOrEqual(LIMIT);
          for (const order of ['x', 'y', 'z'])
            expect([...running, ...asleep].filter((each) => each.order === order).length).toBeLessThanOrEqual(
              1,
            );
        }
        for (const order of ['x', 'y', 'z']) {
          const ns = finished.filter((each) => each.order === order).map(({ n }) => n);
          expect(ns).toEqual(ns.toSorted((a, b) => a - b));
        }
        expect([queue.size, queue.bytes, queue.take()]).toEqual([0, 0, undefined]);
      }),
    );
  });
});
