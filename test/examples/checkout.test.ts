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

/** Starts the plugin with a shop that refuses the paths in `refused`. */
async function startCheckout(refused: readonly string[] = []) {
  const asked: string[] = [];
  const host = await createTestHost({
    plugin: PLUGIN,
    fetch: (request) => {
      const path = new URL(request.url).pathname;
      asked.push(path);
      return Response.json({}, { status: refused.includes(path) ? 409 : 200 });
    },
  });
  onTestFinished(() => host.close());
  const { id } = await host.workflow('checkout', ORDER);
  return { host, id, asked, settled: () => host.settled(id) };
}

const CHARGED = ['/reservations', '/reservations', '/charges'];
const UNDONE = ['/refunds', '/releases', '/releases'];

test('an approved order ships, although the person answers only after 23 hours', async () => {
  const { host, id, asked, settled } = await startCheckout();
  expect(await settled()).toMatchObject({ status: 'waiting' });
  host.advance(hours(23));
  expect(await settled()).toMatchObject({ status: 'waiting' });
  await host.approve(id, 'main.review', { user: 'ann' });
  expect(await settled()).toMatchObject({
    status: 'succeeded',
    output: { status: 'shipped', approvedBy: 'ann' },
  });
  expect(asked).toEqual([...CHARGED, '/shipments']);
});

test('an order that nobody approves within a day is undone', async () => {
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

test('a refused card undoes the reservations, without a retry', async () => {
  const { asked, settled } = await startCheckout(['/charges']);
  expect(await settled()).toMatchObject({ status: 'failed' });
  expect(asked.slice(0, 3)).toEqual(CHARGED);
  expect(asked.slice(3).toSorted()).toEqual(UNDONE);
});

test('a part of the undoing that fails does not keep the other parts from being done', async () => {
  const { asked, settled } = await startCheckout(['/charges', '/refunds']);
  expect(await settled()).toMatchObject({ status: 'failed' });
  expect(asked.slice(3).toSorted()).toEqual(UNDONE);
});

/** Awaits of the function before and after the answer of the person. */
const BEFORE = ['reservations', 'charges', 'review'];
const SHIPPING = [...BEFORE, 'shipments'];
const UNDOING = [...BEFORE, 'refunds', 'releases'];
const POLL = { timeout: 60_000 };

/**
 * Starts a run for each await, lets each run stop at its await, and kills the service. The first request of an await
 * gets no answer, so its step is in flight. `answer` approves or cancels a run at the approval. Returns the ended runs.
 */
async function killAtEach(awaits: readonly string[], answer: (daemon: DaemonProcess, id: string) => unknown) {
  const ledger = await startLedger();
  const requestsOf = (place: string) =>
    ledger.entries.filter(({ body }) => JSON.parse(body).order === `o-${place}`);
  for (const place of awaits)
    ledger.answer(place, (_, response) => {
      const asked = requestsOf(place).filter(({ name }) => name === place).length;
      if (JSON.parse(ledger.entries.at(-1)!.body).order !== `o-${place}` || asked > 1) response.end('{}');
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
  const ended = await killAtEach(SHIPPING, (daemon, id) =>
    daemon.call(decideApproval, {
      params: { runId: id as never, stepId: 'main.review' },
      body: { approved: true },
    }),
  );
  for (const { place, run, requests } of ended) {
    expect(run, place).toMatchObject({ status: 'succeeded', output: { status: 'shipped' } });
    expect(performed(requests), place).toEqual({ reservations: 2, charges: 1, shipments: 1 });
    if (place !== 'review') expect(repeated(requests), place).toContain(place);
  }
}, 180_000);

test('after kill -9 at any await a cancelled order is undone, with each request performed once', async () => {
  const ended = await killAtEach(UNDOING, (daemon, id) =>
    daemon.call(postCancelRun, { params: { runId: id as never } }),
  );
  for (const { place, run, requests } of ended) {
    expect(run, place).toMatchObject({ status: 'cancelled', error: null });
    expect(performed(requests), place).toEqual({ reservations: 2, charges: 1, refunds: 1, releases: 2 });
    if (place !== 'review') expect(repeated(requests), place).toContain(place);
  }
}, 180_000);
