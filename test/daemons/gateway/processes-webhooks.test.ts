import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import { ADMIN_TOKEN } from '../../support/gateway.ts';
import { type Connection, type GatewayProcesses, startProcesses } from './support/start-processes.ts';

const ADMIN = { authorization: `Bearer ${ADMIN_TOKEN}` };
const SLOW = { timeout: 90_000 };
const POLL = { timeout: 30_000, interval: 100 };

async function provisioned(connection: Connection, event: string): Promise<string> {
  const body = JSON.stringify({ pluginId: '@acme/orders', event });
  const headers = { ...ADMIN, 'content-type': 'application/json' };
  return (await connection.send('POST', '/api/v1/webhooks/provision', { headers, body })).body.secret;
}

/** What a sender sends: the same bytes each time. */
function signed(secret: string, payload: object, headers: Record<string, string> = {}) {
  const body = JSON.stringify(payload);
  const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  return { body, headers: { 'x-svc-namespace': 'default', 'x-signature': signature, ...headers } };
}

const deliverTo = (connection: Connection, event: string, delivery: ReturnType<typeof signed>) =>
  connection.send('POST', `/webhooks/%40acme%2Forders/${event}`, delivery);

/** Deliveries by webhook id, asked of whoever answers. */
async function statuses(gateway: GatewayProcesses): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (let cursor = ''; ; ) {
    const response = await fetch(`${gateway.url}/api/v1/webhooks/deliveries?limit=200${cursor}`, {
      headers: ADMIN,
    });
    const { items, nextCursor } = (await response.json()) as {
      items: Array<{ webhookId: string; status: string }>;
      nextCursor: string | null;
    };
    for (const { webhookId, status } of items) found.set(webhookId, status);
    if (nextCursor === null) return found;
    cursor = `&cursor=${nextCursor}`;
  }
}

/** How often each delivery's handler ran. */
function runs(gateway: GatewayProcesses): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { message, meta } of gateway.logs) {
    const { webhookId } = (meta ?? {}) as { webhookId?: string };
    if (message === 'handled' && webhookId) counts.set(webhookId, (counts.get(webhookId) ?? 0) + 1);
  }
  return counts;
}

test('of fifty identical deliveries over both processes one runs, answered sync or async', SLOW, async () => {
  const gateway = await startProcesses();
  await gateway.allUp();
  const { primary, sibling } = await gateway.connections();
  const others = await gateway.connections();
  const four = [primary, sibling, others.primary, others.sibling];

  for (const [event, header, ran] of [
    ['created', {}, 'ok'],
    ['later', { 'x-delivery': 'only-one' }, 'accepted'],
  ] as const) {
    // Provisioned by one process, known to the other.
    const delivery = signed(
      await provisioned(sibling, event),
      { delivery: { id: 'only-one' }, sleepMs: 50 },
      header,
    );
    const before = runs(gateway).size;
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) => deliverTo(four[i % 4]!, event, delivery)),
    );
    const told = answers.map(({ body }) => body.status);
    expect(told.filter((status) => status === ran)).toHaveLength(1);
    expect(told.filter((status) => status === 'duplicate')).toHaveLength(49);
    await expect.poll(() => runs(gateway).size - before, POLL).toBe(1);
  }
});

test('under load on both processes nothing is lost and nothing runs twice', SLOW, async () => {
  const gateway = await startProcesses();
  await gateway.allUp();
  const pairs = await Promise.all([gateway.connections(), gateway.connections()]);
  const four = pairs.flatMap(({ primary, sibling }) => [primary, sibling]);
  const secret = await provisioned(four[0]!, 'later');
  const answers = await Promise.all(
    Array.from({ length: 400 }, (_, i) =>
      deliverTo(four[i % 4]!, 'later', signed(secret, { n: i }, { 'x-delivery': `d-${i}` })),
    ),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  const ids = answers.map(({ body }) => body.webhookId as string).sort();
  const ended = async () =>
    [...(await statuses(gateway))].flatMap(([id, status]) => (status === 'succeeded' ? [id] : []));
  await expect.poll(async () => (await ended()).length, POLL).toBe(400);
  expect((await ended()).sort()).toEqual(ids);
  // That each ran is in its record; log lines may be dropped under pressure, but none may tell of a second run.
  expect(new Set(runs(gateway).values())).toEqual(new Set([1]));
});

test('when both processes start bulk replays, each delivery is replayed once', SLOW, async () => {
  const gateway = await startProcesses();
  await gateway.allUp();
  const { primary, sibling } = await gateway.connections();
  const secret = await provisioned(primary, 'created');
  for (let n = 0; n < 30; n++) {
    const failing = signed(secret, { delivery: { id: `f-${n}` }, do: 'fail' });
    expect((await deliverTo(n % 2 === 0 ? primary : sibling, 'created', failing)).status).toBe(500);
  }
  const failed = [...(await statuses(gateway)).keys()];
  expect(failed).toHaveLength(30);
  const asked = {
    headers: { ...ADMIN, 'content-type': 'application/json' },
    body: JSON.stringify({ status: 'failed', since: 0 }),
  };
  const replies = await Promise.all(
    [primary, sibling].map((connection) =>
      connection.send('POST', '/api/v1/webhooks/deliveries/replay', asked),
    ),
  );
  const replayed = replies.flatMap(({ body }) =>
    (body.items as Array<{ replayOf: string }>).map(({ replayOf }) => replayOf),
  );
  // A replay that failed meanwhile may be among those of the other.
  expect(replayed.filter((id) => failed.includes(id)).toSorted()).toEqual(failed.toSorted());
});

test('a killed process is restarted, and its accepted deliveries run', SLOW, async () => {
  const gateway = await startProcesses();
  await gateway.allUp();
  const { primary, sibling } = await gateway.connections();
  const second = await gateway.connections();
  const secret = await provisioned(primary, 'later');
  const syncSecret = await provisioned(primary, 'created');
  const [pid] = gateway.siblingPids();
  const accepted: string[] = [];
  const hanging = deliverTo(
    second.sibling,
    'created',
    signed(syncSecret, { delivery: { id: 's' }, sleepMs: 20_000 }),
  );
  const cut = hanging.then(
    () => 'answered',
    () => 'cut',
  );
  await expect.poll(async () => [...(await statuses(gateway)).values()], POLL).toContain('running');
  for (let i = 0; i < 200; i++) {
    deliverTo(sibling, 'later', signed(secret, { n: i, sleepMs: 5 }, { 'x-delivery': `k-${i}` })).then(
      ({ body }) => {
        accepted.push(body.webhookId);
        if (accepted.length === 60) process.kill(pid!, 'SIGKILL');
      },
      () => {},
    );
  }
  await expect.poll(() => gateway.siblingPids().filter((next) => next !== pid), POLL).toHaveLength(1);
  expect(await cut).toBe('cut');
  await expect
    .poll(async () => {
      const now = await statuses(gateway);
      return accepted.filter((id) => now.get(id) !== 'succeeded').length;
    }, POLL)
    .toBe(0);
  expect(accepted.length).toBeGreaterThanOrEqual(60);
  // The one it was in the middle of answering is told as what it is.
  await expect.poll(async () => [...(await statuses(gateway)).values()], POLL).toContain('interrupted');
  expect([...(await statuses(gateway)).values()]).not.toContain('running');
  expect(gateway.service.status()).toMatchObject({ restarts: 0, furtherProcesses: [{ restarts: 1 }] });
});

test(
  'killing the first process leaves the other serving, and all accepted deliveries run',
  SLOW,
  async () => {
    const gateway = await startProcesses();
    await gateway.allUp();
    const { primary, sibling } = await gateway.connections();
    const secret = await provisioned(sibling, 'later');
    const [former, staying] = [gateway.primaryPid(), gateway.siblingPids()];
    const accepted: string[] = [];
    for (let i = 0; i < 80; i++) {
      const delivery = signed(secret, { n: i, sleepMs: 50 }, { 'x-delivery': `p-${i}` });
      deliverTo(i % 2 === 0 ? primary : sibling, 'later', delivery).then(
        ({ body }) => {
          if (body.webhookId) accepted.push(body.webhookId);
          if (accepted.length === 40) process.kill(former, 'SIGKILL');
        },
        () => {},
      );
    }
    await expect.poll(() => gateway.service.status().restarts, POLL).toBe(1);
    expect(gateway.siblingPids()).toEqual(staying);
    const during = await deliverTo(sibling, 'later', signed(secret, { n: 80 }, { 'x-delivery': 'p-80' }));
    expect(during.status).toBe(202);
    await expect.poll(() => gateway.service.status().state, POLL).toBe('ready');
    expect(gateway.service.status()).toMatchObject({ port: gateway.port });
    await expect
      .poll(async () => {
        const now = await statuses(gateway);
        return accepted.filter((id) => now.get(id) !== 'succeeded').length;
      }, POLL)
      .toBe(0);
    expect(accepted.length).toBeGreaterThanOrEqual(40);
  },
);
