import { expect, onTestFinished, test } from 'vitest';
import { rest } from '../../src/daemons/rest/index.ts';
import { startTestDaemon } from '../support/daemon.ts';
import { ADMIN_TOKEN, OTHER_TOKEN, startGateway } from '../support/gateway.ts';
import { asCaller } from './rest/support.ts';
import { startWorkflow } from './workflow/support/workflow.ts';

interface Streams {
  /** How many there may be in all. */
  count: number;
  /** Opens one for a tenant. */
  open(tenant: 'default' | 'other', signal: AbortSignal): Promise<Response>;
}

const services: Record<string, () => Promise<Streams>> = {
  async 'log records'() {
    const daemon = await startTestDaemon(rest);
    return {
      count: 32,
      open: (tenant, signal) =>
        daemon.fetch('/api/v1/logs?follow=1', { headers: asCaller('ci', tenant), signal }),
    };
  },
  async 'analytics events'() {
    const daemon = await startTestDaemon(rest);
    return {
      count: 32,
      open: (tenant, signal) =>
        daemon.fetch('/api/v1/analytics/events?follow=1', { headers: asCaller('ci', tenant), signal }),
    };
  },
  async 'webhook deliveries'() {
    const gateway = await startGateway();
    const tokens = { default: ADMIN_TOKEN, other: OTHER_TOKEN };
    return {
      count: 200,
      open: (tenant, signal) =>
        gateway.fetch('/api/v1/webhooks/deliveries/stream', {
          headers: { authorization: `Bearer ${tokens[tenant]}` },
          signal,
        }),
    };
  },
  async 'workflow runs'() {
    const it = await startWorkflow();
    const steps = [{ uses: 'signal', with: { name: 'never' } }];
    const runs = {
      default: await it.start({ steps }),
      other: await it.start({ steps }, { tenant: 'other' }),
    };
    return {
      count: 400,
      open: (tenant, signal) =>
        it.fetch(`/api/v1/workflows/runs/${runs[tenant]}/events`, {
          headers: { accept: 'text/event-stream', ...asCaller('ci', tenant) },
          signal,
        }),
    };
  },
};

/** Opens as many as there may be; answers those that are open, and the answer that refused the next. */
async function openAll({ count, open }: Streams, tenant: 'default' | 'other') {
  const opened: Array<{ controller: AbortController; answer: Response }> = [];
  onTestFinished(() => {
    for (const { controller } of opened) controller.abort();
  });
  while (opened.length <= count) {
    const controller = new AbortController();
    const answer = await open(tenant, controller.signal);
    if (answer.status !== 200) return { opened, answer };
    // An answer that nobody holds is collected, and its connection closed.
    opened.push({ controller, answer });
  }
  throw new Error(`${opened.length} streams of ${count} were opened`);
}

test.each(Object.entries(services))('one tenant leaves streams of %s for others', async (_, start) => {
  const streams = await start();
  const mine = await openAll(streams, 'default');
  expect(mine.opened).toHaveLength((streams.count * 3) / 4);
  expect([mine.answer.status, mine.answer.headers.get('retry-after')]).toEqual([429, '10']);
  expect(await mine.answer.json()).toEqual({
    error: {
      code: 'RATE_LIMIT_EXCEEDED',
      message: expect.stringContaining(`"default" has used its share of the ${streams.count} streams`),
      details: { namespaceId: 'default', streams: streams.count, retryAfterSeconds: 10 },
    },
  });

  const theirs = await openAll(streams, 'other');
  expect(theirs.opened.length).toBeGreaterThan(streams.count / 8);
  expect(theirs.answer.status).toBe(429);

  for (const { controller } of mine.opened.splice(0, 8)) controller.abort();
  await expect.poll(async () => (await streams.open('other', AbortSignal.timeout(5000))).status).toBe(200);
});

test('when all streams are in use, a new client gets Retry-After', async () => {
  const daemon = await startTestDaemon(rest);
  const controller = new AbortController();
  onTestFinished(() => controller.abort());
  const { signal } = controller;
  const open = (tenant: string) =>
    daemon.fetch('/api/v1/logs?follow=1', { headers: asCaller('ci', tenant), signal });
  const answers = await Promise.all(Array.from({ length: 32 }, (_, i) => open(`t${i}`)));
  expect(answers.map(({ status }) => status)).toEqual(Array(32).fill(200));
  const refused = await open('late');
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '10']);
  expect(await refused.json()).toMatchObject({
    error: { code: 'SERVICE_UNAVAILABLE', details: { streams: 32 } },
  });
});
