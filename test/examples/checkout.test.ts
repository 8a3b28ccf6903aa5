import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { decideApproval, postCancelRun, startRun } from '../../src/contracts/index.ts';
import { days, hours } from '../../src/kit/time/duration.ts';
import { createTestHost } from '../../src/testing/index.ts';
import { type LedgerEntry, startLedger } from '../daemons/workflow/support/ledger.ts';
import { type DaemonProcess, startProcess } from '../daemons/workflow/support/process.ts';
import { copyExample } from './support/copied-example.ts';

const PLUGIN = join(import.meta.dirname, '../../examples/plugins/checkout');
const ORDER = { id: 'o-1', cents: 1900, items: ['mug', 'tea'].map((sku) => ({ sku, quantity: 2 })) };

/** Starts the plugin with a shop that answers the paths in `refused` with `status`. */
async function startCheckout(refused: readonly string[] = [], status = 409) {
  const asked: string[] = [];
  const keys: Array<string | null> = [];
  const bodies: Array<{ key?: string }> = [];
  const host = await createTestHost({
    plugin: PLUGIN,
    fetch: async (request) => {
      const path = new URL(request.url).pathname;
      asked.push(path);
      keys.push(request.headers.get('idempotency-key'));
      bodies.push((await request.json()) as { key?: string });
      return Response.json({}, { status: refused.includes(path) ? status : 200 });
    },
  });
  onTestFinished(() => host.close());
  const { id } = await host.workflow('checkout', ORDER);
  return { host, id, asked, keys, bodies, settled: () => host.settled(id) };
}

const CHARGED = ['/reservations', '/reservations', '/charges'];
const UNDONE = ['/charges/undo', '/reservations/undo', '/reservations/undo'];

test('an approved order ships, although the person answers only after 23 hours', async () => {
  const { host, id, asked, settled } = await startCheckout();
  expect(await settled()).toMatchObject({ status: 'waiting' });
  host.advance(hours(23));
  expect(await settled()).toMatchObject({ status: 'waiting' });
  await host.approve(id, 'main.review');
  expect(await settled()).toMatchObject({
    status: 'succeeded',
    output: { status: 'shipped' },
  });
  expect(asked).toEqual([...CHARGED, '/shipments']);
});

test('an order that is not approved within a day is undone', async () => {
  const { host, asked, settled } = await startCheckout();
  expect(await settled()).toMatchObject({ status: 'waiting' });
  host.advance(days(1));
  expect(await settled()).toMatchObject({
    status: 'failed',
    error: { details: { step: 'main.review', error: { details: { reason: 'timeout' } } } },
  });
  expect(asked.slice(0, 3)).toEqual(CHARGED);
  expect(asked.slice(3).toSorted()).toEqual(UNDONE);
});

test('a refused order is undone', async () => {
  const { host, id, asked, settled } = await startCheckout();
  expect(await settled()).toMatchObject({ status: 'waiting' });
  await host.approve(id, 'main.review', { approved: false });
  expect(await settled()).toMatchObject({ status: 'failed' });
  expect(asked.slice(3).toSorted()).toEqual(UNDONE);
});

test('a declined card undoes the reservations, without a retry', async () => {
  const { asked, settled } = await startCheckout(['/charges']);
  expect(await settled()).toMatchObject({
    status: 'failed',
    error: { message: expect.stringContaining('The shop answered 409 to POST /charges.') },
  });
  expect(asked.slice(0, 3)).toEqual(CHARGED);
  expect(asked.slice(3).toSorted()).toEqual(UNDONE);
});

test('if a part cannot be undone, the other parts are, and the error names it beside the cause', async () => {
  const { asked, settled } = await startCheckout(['/charges', '/charges/undo']);
  expect(await settled()).toMatchObject({
    status: 'failed',
    error: {
      code: 'UNDO_INCOMPLETE',
      message: expect.stringMatching(/^Undo \/charges [0-9a-f-]{36} by hand\. .*409 to POST \/charges\./),
    },
  });
  expect(asked.slice(3).toSorted()).toEqual(UNDONE);
});

test('shipping is tried for a day, and then not undone', async () => {
  const { host, id, asked, settled } = await startCheckout(['/shipments'], 503);
  await settled();
  await host.approve(id, 'main.review');
  expect(await settled()).toMatchObject({ status: 'waiting' });
  host.advance(hours(23));
  expect(await settled()).toMatchObject({ status: 'waiting' });
  host.advance(hours(2));
  expect(await settled()).toMatchObject({
    status: 'failed',
    error: { message: expect.stringContaining('The shop answered 503 to POST /shipments.') },
  });
  expect(asked.filter((path) => path.endsWith('/undo'))).toEqual([]);
});

test('an undo names the request that it undoes', async () => {
  const { bodies, keys, settled } = await startCheckout(['/charges']);
  await settled();
  expect(
    bodies
      .slice(3)
      .map(({ key }) => key)
      .toSorted(),
  ).toEqual(keys.slice(0, 3).toSorted());
});

/** Awaits of the function before and after the answer of the person. */
const BEFORE = ['reservations', 'charges', 'review'];
const SHIPPING = [...BEFORE, 'shipments'];
const UNDOING = [...BEFORE, 'charges/undo', 'reservations/undo'];
const POLL = { timeout: 60_000 };

/**
 * Starts a run for each await, lets each run stop at its await, and kills the service. The first request of an await
 * gets no answer, so its step is in flight. `answer` approves or cancels a run at the approval. Returns the ended runs.
 */
async function killAtEach(awaits: readonly string[], answer: (daemon: DaemonProcess, id: string) => unknown) {
  const ledger = await startLedger();
  const requestsOf = (place: string) =>
    ledger.entries.filter(({ body }) => JSON.parse(body).order === `o-${place}`);
  for (const path of ['reservations', 'charges', 'shipments'])
    ledger.answer(path, (_, response) => {
      const { name, body } = ledger.entries.at(-1)!;
      const asked = requestsOf(name).filter((other) => other.name === name).length;
      if (JSON.parse(body).order !== `o-${name}` || asked > 1) response.end('{}');
    });
  const dataDir = await copyExample('checkout', { network: [new URL(ledger.url).host] });
  const config = {
    pluginConfig: { checkout: { shopUrl: ledger.url } },
    // A run that is stopped in a step occupies a process.
    execution: { worker: { maxProcesses: awaits.length + 1 } },
  };
  let daemon = await startProcess(dataDir, config);
  const start = async (place: string) => {
    const input = { ...ORDER, id: `o-${place}` };
    return (await daemon.call(startRun, { body: { workflowId: 'checkout', input } })).run.id;
  };
  const runs = new Map(await Promise.all(awaits.map(async (place) => [place, await start(place)] as const)));
  const waits = (id: string) =>
    expect.poll(async () => (await daemon.run(id)).waitingReason, POLL).toBe('approval');
  const atAwait = async ([place, id]: readonly [string, string]) => {
    const isBefore = BEFORE.includes(place);
    if (!isBefore || place === 'review') await waits(id);
    if (!isBefore) await answer(daemon, id);
    const asked = () => requestsOf(place).filter(({ name }) => name === place).length;
    if (place !== 'review') await expect.poll(asked, POLL).toBeGreaterThan(0);
  };
  await Promise.all([...runs].map(atAwait));
  await daemon.kill();
  daemon = await startProcess(dataDir, config);
  const end = async ([place, id]: readonly [string, string]) => {
    if (BEFORE.includes(place)) {
      await waits(id);
      await answer(daemon, id);
    }
    await expect.poll(async () => (await daemon.run(id)).finishedAt, POLL).not.toBeNull();
    return { place, run: await daemon.run(id), requests: requestsOf(place) };
  };
  return Promise.all([...runs].map(end));
}

const approve = (daemon: DaemonProcess, id: string) =>
  daemon.call(decideApproval, {
    params: { runId: id as never, stepId: 'main.review' },
    body: { approved: true },
  });
const cancel = (daemon: DaemonProcess, id: string) =>
  daemon.call(postCancelRun, { params: { runId: id as never } });

/** Returns how often the shop performed each request. It performs requests with the same key once. */
function performed(requests: readonly LedgerEntry[]): Record<string, number> {
  const byName = Map.groupBy(requests, ({ name }) => name);
  const keys = [...byName].map(([name, asked]) => [name, new Set(asked.map(({ key }) => key)).size]);
  return Object.fromEntries(keys);
}

/** Returns the requests that were repeated with the same key. */
const repeated = (requests: readonly LedgerEntry[]): string[] =>
  requests
    .filter(({ key }, index) => requests.findIndex((other) => other.key === key) < index)
    .map(({ name }) => name);

test('after kill -9 at any await an approved order ships, with each request performed once', async () => {
  const ended = await killAtEach(SHIPPING, approve);
  for (const { place, run, requests } of ended) {
    expect(run, place).toMatchObject({ status: 'succeeded', output: { status: 'shipped' } });
    expect(performed(requests), place).toEqual({ reservations: 2, charges: 1, shipments: 1 });
    expect(new Set(repeated(requests)), place).toEqual(new Set(place === 'review' ? [] : [place]));
  }
}, 180_000);

test('after kill -9 at any await a cancelled order is undone, with each request performed once', async () => {
  const ended = await killAtEach(UNDOING, cancel);
  for (const { place, run, requests } of ended) {
    expect(run, place).toMatchObject({ status: 'cancelled', error: null });
    expect(performed(requests), place).toEqual({
      ...{ reservations: 2, charges: 1 },
      ...{ 'charges/undo': 1, 'reservations/undo': 2 },
    });
    if (place !== 'review') expect(repeated(requests), place).toContain(place);
    // The other undo requests can be in flight, too.
    const inFlight = BEFORE.includes(place) ? [place] : ['charges/undo', 'reservations/undo'];
    expect(inFlight, place).toEqual(expect.arrayContaining(repeated(requests)));
  }
}, 180_000);

test('an order that is cancelled while it ships is shipped, and not undone', async () => {
  const ledger = await startLedger();
  const shipping: Array<() => void> = [];
  ledger.answer('shipments', (_, response) => void shipping.push(() => response.end('{}')));
  const dataDir = await copyExample('checkout', { network: [new URL(ledger.url).host] });
  const daemon = await startProcess(dataDir, { pluginConfig: { checkout: { shopUrl: ledger.url } } });
  const { id } = (await daemon.call(startRun, { body: { workflowId: 'checkout', input: ORDER } })).run;
  await expect.poll(async () => (await daemon.run(id)).waitingReason, POLL).toBe('approval');
  await approve(daemon, id);
  await expect.poll(() => shipping.length, POLL).toBe(1);
  await cancel(daemon, id);
  expect((await daemon.run(id)).status).toBe('cancelling');
  shipping[0]!();
  await expect.poll(async () => (await daemon.run(id)).finishedAt, POLL).not.toBeNull();
  expect((await daemon.run(id)).output).toEqual({ status: 'shipped' });
  expect(performed(ledger.entries)).toEqual({ reservations: 2, charges: 1, shipments: 1 });
}, 120_000);
