import { readdir, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listDeliveries, listWebhooks } from '../../../src/contracts/index.ts';
import { minutes, seconds } from '../../../src/kit/time/duration.ts';
import { deliver, provision, startGateway, type TestGateway } from '../../support/gateway.ts';
import { eventually } from '../../support/webhook-senders.ts';

/** Sends so many unsigned deliveries over one connection, and counts its answers by status. */
function flood(gateway: TestGateway, count: number, headers: string): Promise<Record<string, number>> {
  const request = `POST /webhooks/%40acme%2Forders/plain HTTP/1.1\r\nHost: a\r\nX-Svc-Namespace: default\r\n${headers}Content-Length: 2\r\n\r\n{}`;
  return new Promise((resolve, reject) => {
    const statuses: Record<string, number> = {};
    let answered = 0;
    let tail = '';
    const socket = connect(gateway.port, '127.0.0.1', () => {
      for (let i = 0; i < count; i++) socket.write(request, 'latin1');
    });
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      const text = tail + chunk;
      const lines = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)];
      for (const [, status] of lines) statuses[status!] = (statuses[status!] ?? 0) + 1;
      answered += lines.length;
      // A status line may lie in two pieces.
      const last = lines.at(-1);
      tail = text.slice(Math.max(last ? last.index + last[0].length : 0, text.length - 12));
      if (answered < count) return;
      socket.destroy();
      resolve(statuses);
    });
    socket.on('error', reject);
  });
}

async function bytesBelow(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map((entry) =>
      stat(join(entry.parentPath, entry.name)).then(
        ({ size }) => size,
        () => 0,
      ),
    );
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

async function recordsOf(gateway: TestGateway, status: string): Promise<number> {
  let count = 0;
  let cursor: string | undefined;
  do {
    const query = { status, limit: 200, ...(cursor === undefined ? {} : { cursor }) } as never;
    const { items, nextCursor } = await gateway.call(listDeliveries, { query });
    count += items.length;
    cursor = nextCursor ?? undefined;
  } while (cursor !== undefined);
  return count;
}

async function unrecordedOf(gateway: TestGateway): Promise<number | undefined> {
  const text = await (await gateway.fetch('/metrics')).text();
  const lines = text.matchAll(/svc_gateway_webhook_unrecorded_total\{[^}]*event="plain"[^}]*\} (\d+)/g);
  return [...lines].reduce((sum, [, count]) => sum + Number(count), 0);
}

test('a flood of unsigned deliveries leaves sixty short records a minute, and displaces no genuine delivery', async () => {
  const gateway = await startGateway({ config: { retention: { deliveriesMaxBytes: 3_000_000 } } });
  const secret = await provision(gateway, 'plain');
  for (let n = 0; n < 20; n++)
    expect((await deliver(gateway, { event: 'plain', secret, payload: { n } })).status).toBe(200);
  const before = await bytesBelow(gateway.dataDir);
  const count = 2000;
  const statuses = await flood(gateway, count, `User-Agent: ${'u'.repeat(15_000)}\r\n`);
  expect(statuses).toEqual({ 401: 120, 429: count - 120 });
  expect(await recordsOf(gateway, 'refused')).toBe(60);
  expect(await unrecordedOf(gateway)).toBe(count - 60);
  const { items } = await gateway.call(listWebhooks);
  expect(items.find(({ event }) => event === 'plain')).toMatchObject({ unrecorded: count - 60 });
  expect(gateway.logs.lines.find(({ reasonCode }) => reasonCode === 'REFUSALS_SAMPLED')).toMatchObject({
    ...{ tenantId: 'default', pluginId: '@acme/orders', level: 'warn' },
    evidence: { event: 'plain', count: count - 60 },
  });
  // 30 MB came in.
  expect((await bytesBelow(gateway.dataDir)) - before).toBeLessThan(1_500_000);

  // A minute later there is room for sixty more, and sweeping takes nothing of the genuine ones.
  gateway.clock.advance(minutes(1));
  await flood(gateway, 100, '');
  gateway.clock.advance(minutes(1) + seconds(1));
  await eventually(async () => expect(await recordsOf(gateway, 'refused')).toBeLessThanOrEqual(120));
  expect(await recordsOf(gateway, 'succeeded')).toBe(20);
  expect((await deliver(gateway, { event: 'plain', secret })).status).toBe(200);
});

test('unknown namespaces and instances share one record budget, and have no totals of their own', async () => {
  const gateway = await startGateway();
  await provision(gateway, 'shop', 'a');
  const send = (n: number) => deliver(gateway, { event: 'shop', instance: `made-up-${n}` });
  const statuses = new Set<number>();
  for (let n = 0; n < 80; n++) statuses.add((await send(n)).status);
  expect(statuses).toEqual(new Set([401, 429]));
  expect(await recordsOf(gateway, 'refused')).toBe(60);
  const { items } = await gateway.call(listWebhooks);
  expect(items.every(({ unrecorded }) => unrecorded === 0)).toBe(true);
});
