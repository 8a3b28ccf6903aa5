import { expect, onTestFinished, test } from 'vitest';
import { ManifestV3 } from '../../../src/contracts/index.ts';
import { DeliveryEnds } from '../../../src/daemons/gateway/domain/webhooks/dispatch/delivery-ends.ts';
import { InboxDispatcher } from '../../../src/daemons/gateway/domain/webhooks/dispatch/dispatcher.ts';
import type { Handled } from '../../../src/daemons/gateway/domain/webhooks/dispatch/handler-call.ts';
import { type JsonPayload, payloadOf } from '../../../src/daemons/gateway/domain/webhooks/receive/payload.ts';
import {
  type WebhookPlugin,
  WebhookTargets,
} from '../../../src/daemons/gateway/domain/webhooks/receive/targets.ts';
import { systemRandom } from '../../../src/kit/security/random.ts';
import { createLogger } from '../../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../../src/kit/time/clock.ts';
import type { NewDelivery, WebhookInbox } from '../../../src/store/ports/index.ts';
import { sqliteGatewayStore } from '../../../src/store/sqlite/index.ts';
import { captureLogs, tempDir } from '../../support/daemon.ts';

const OK: Handled = { succeeded: true, httpStatus: 200, body: {}, record: '{}' };

function pluginOf(version: string) {
  const manifest = ManifestV3.parse({
    schema: 'svc.plugin/3',
    id: 'p',
    version,
    webhooks: ['plain', 'ordered'].map((event) => ({
      event,
      handler: 'h.js#on',
      async: true,
      auth: { type: 'secret', header: 'x' },
      retry: { maxAttempts: 3 },
      ...(event === 'ordered' ? { orderBy: 'of' } : {}),
    })),
  });
  return { id: 'p', version, root: `/plugins/p-${version}`, manifest };
}

/** The real dispatcher on a real store; its handler is the test's, and ends when the test says so. */
async function start({ concurrency = 8 } = {}) {
  const clock = manualClock();
  const random = systemRandom(() => clock.now());
  const logs = captureLogs();
  const logger = createLogger({ serviceId: 'gateway', output: logs, clock });
  const store = await sqliteGatewayStore({ dataDir: await tempDir(), clock, logger, shared: false });
  const targets = new WebhookTargets([pluginOf('1.0.0')]);
  const paused = new Set<string>();
  let read = 0;
  const inbox: WebhookInbox = {
    ...store.inbox,
    async unfinished(...asked) {
      const page = await store.inbox.unfinished(...asked);
      read += page.length;
      return page;
    },
  };
  const runs: Array<{ name: string; version: string; end(handled?: Handled): void }> = [];
  const dispatcher = new InboxDispatcher({
    call: ({ requestId }, { plugin }) =>
      new Promise((resolve) =>
        runs.push({ name: requestId, version: plugin.version, end: (handled = OK) => resolve(handled) }),
      ),
    inbox,
    ends: new DeliveryEnds({ inbox, logger }),
    targets,
    pauses: { isPaused: ({ event }) => paused.has(event) },
    clock,
    random,
    logger,
    observe: () => {},
    concurrency,
  });
  onTestFinished(async () => {
    const closed = dispatcher.close();
    for (const { end } of runs) end();
    await closed;
    await store.close();
  });
  /** On disk as accepted, and known to nobody yet. */
  async function accept(name: string, event = 'plain', order: string | null = null): Promise<NewDelivery> {
    const body = Buffer.from('{}');
    const delivery: NewDelivery = {
      ...{ webhookId: random.uuid(), namespaceId: 'default', pluginId: 'p', event, instanceId: '' },
      ...{
        receivedAt: clock.now(),
        source: '::1',
        requestId: name,
        traceId: 't',
        headers: '[]',
        body,
        bodyBytes: 2,
      },
      ...{ mode: 'async', origin: 'sender', replayOf: null, orderKey: order },
    };
    await store.inbox.accept(delivery, undefined, '');
    return delivery;
  }
  const enqueue = (delivery: NewDelivery) => {
    const target = targets.require('p', delivery.event, undefined);
    dispatcher.enqueue(delivery, target, payloadOf(target, delivery) as JsonPayload);
  };
  return {
    ...{ dispatcher, clock, logs, paused, runs, accept, enqueue },
    names: () => runs.map(({ name }) => name),
    /** Deliveries read from the store. */
    read: () => read,
    load: (...plugins: WebhookPlugin[]) => targets.replace(plugins),
  };
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 50));

test('a delivery read from the store before it was enqueued runs once', async () => {
  const { dispatcher, accept, enqueue, names } = await start();
  const delivery = await accept('a');
  dispatcher.runBacklog();
  await expect.poll(names).toEqual(['a']);
  await enqueue(delivery);
  await settled();
  expect(names()).toEqual(['a']);
});

test('while the store is read, a later delivery of an order stays behind the earlier ones', async () => {
  const { dispatcher, accept, enqueue, names, runs } = await start();
  await accept('first', 'ordered', 'k');
  const second = await accept('second', 'ordered', 'k');
  dispatcher.runBacklog();
  // In the turn in which the reading began, before its answer.
  await enqueue(second);
  await expect.poll(names).toEqual(['first']);
  runs[0]!.end();
  await expect.poll(names).toEqual(['first', 'second']);
});

test('a delivery paused within its order continues in that order on resume', async () => {
  const { dispatcher, accept, enqueue, names, runs, paused } = await start({ concurrency: 1 });
  for (const name of ['o1', 'o2', 'o3']) await enqueue(await accept(name, 'ordered', 'k'));
  await enqueue(await accept('a'));
  runs[0]!.end();
  await expect.poll(names).toEqual(['o1', 'a']);
  await enqueue(await accept('b'));
  // o2 comes to the front and is put back into the store; the free place goes to b.
  paused.add('ordered');
  runs[1]!.end();
  await expect.poll(names).toEqual(['o1', 'a', 'b']);
  paused.delete('ordered');
  dispatcher.runBacklog();
  await settled();
  for (const [place, name] of [
    [2, 'o2'],
    [3, 'o3'],
  ] as const) {
    runs[place]!.end();
    await expect.poll(() => names().at(-1)).toBe(name);
  }
});

test('a retry runs the currently loaded code, and waits while no code is loaded', async () => {
  const { dispatcher, accept, enqueue, clock, runs, load, logs } = await start();
  await enqueue(await accept('a'));
  await enqueue(await accept('b'));
  const failed = { ...OK, succeeded: false, httpStatus: 500 };
  for (const { end } of runs) end(failed);
  await settled();
  load();
  clock.advance(1000);
  await settled();
  expect(runs).toHaveLength(2);
  expect(logs.lines.filter(({ message }) => /wait: .*not loaded/.test(String(message)))).toHaveLength(1);

  load(pluginOf('2.0.0'));
  dispatcher.runBacklog();
  await expect
    .poll(() => runs.slice(2).map(({ name, version }) => `${name} ${version}`))
    .toEqual(['a 2.0.0', 'b 2.0.0']);
});

test('deliveries of a paused webhook are read once, however often the queue has room', async () => {
  const { dispatcher, accept, enqueue, paused, read, runs } = await start();
  const many = (count: number, event?: string) =>
    Promise.all(Array.from({ length: count }, (_, index) => accept(`${index}`, event)));
  paused.add('ordered');
  await many(1000, 'ordered');
  // More than memory holds, so that the store is read in turns.
  for (const delivery of await many(3000)) await enqueue(delivery);
  const endAll = () => {
    for (const { end } of runs) end();
  };
  while (runs.length < 3000) {
    endAll();
    await new Promise((turn) => setImmediate(turn));
  }
  endAll();
  expect(read()).toBeLessThan(5000);

  paused.delete('ordered');
  dispatcher.runBacklog();
  await expect.poll(() => runs.length).toBe(3008);
});
