import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { ADMIN_TOKEN } from '../../../support/gateway.ts';
import { createKillableGateway } from '../../../support/gateway-process.ts';
import { startReceiver } from '../../../support/message-receiver.ts';

const MESSAGES = Number(process.env.SVC_TEST_MESSAGES ?? 5000);
const KILLS = 5;
const PUBLISHERS = 32;
const HEADERS = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' };

test('kills lose no message, and repeat only those that were in flight, with the same id', {
  timeout: 1_800_000,
}, async () => {
  const gateway = await createKillableGateway({ outgoing: { allowPrivateAddresses: true } });
  let child: ChildProcess = await gateway.start();
  const receiver = await startReceiver();
  const pool = new Pool(gateway.url, { connections: PUBLISHERS });
  onTestFinished(() => pool.destroy());
  const post = async (
    path: string,
    body: object,
  ): Promise<{ status: number; reply: Record<string, unknown> }> => {
    const answer = await pool.request({ method: 'POST', path, headers: HEADERS, body: JSON.stringify(body) });
    return { status: answer.statusCode, reply: (await answer.body.json()) as Record<string, unknown> };
  };
  expect(
    (await post('/api/v1/endpoints', { url: receiver.url, retrySchedule: [1, 1, 1, 1, 1] })).status,
  ).toBe(201);

  const ids = new Map<number, string>();
  let next = 0;
  /** Repeats a publish until it is acknowledged, as a caller with an idempotency key does. */
  async function publish(n: number): Promise<void> {
    for (;;) {
      const body = { type: 'x', data: n, idempotencyKey: `n${n}` };
      const answer = await post('/api/v1/messages', body).catch(() => undefined);
      if (answer?.status === 202) return void ids.set(n, answer.reply.id as string);
      await sleep(50);
    }
  }
  const publishing = Promise.all(
    Array.from({ length: PUBLISHERS }, async () => {
      while (next < MESSAGES) await publish(next++);
    }),
  );

  const kills: number[] = [];
  for (let kill = 1; kill <= KILLS; kill++) {
    while (ids.size < (MESSAGES * kill) / (KILLS + 1)) await sleep(5);
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
    kills.push(performance.now());
    child = await gateway.start();
  }
  await publishing;

  const receipts = Map.groupBy(receiver.received, ({ body }) => (JSON.parse(body) as { data: number }).data);
  await expect
    .poll(() => new Set(receiver.received.map(({ id }) => id)).size, { timeout: 300_000, interval: 200 })
    .toBe(MESSAGES);
  // Attempts whose end was not stored follow within seconds.
  await sleep(2000);
  const received = Map.groupBy(receiver.received, ({ body }) => (JSON.parse(body) as { data: number }).data);
  expect(receipts.size).toBeLessThanOrEqual(received.size);
  expect(received.size).toBe(MESSAGES);
  let repeated = 0;
  for (const [n, messages] of received) {
    expect([n, new Set(messages.map(({ id }) => id))]).toEqual([n, new Set([ids.get(n)])]);
    for (const [index, { receivedAt }] of messages.entries()) {
      const later = messages[index + 1];
      if (!later) continue;
      repeated++;
      expect(kills.some((at) => receivedAt < at && at < later.receivedAt)).toBe(true);
    }
  }
  console.log(`${MESSAGES} messages, ${KILLS} kills: 0 lost, ${repeated} repeated with the same id`);
});
