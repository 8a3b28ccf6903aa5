import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createPeers } from '../../../src/daemons/peers.ts';
import { EndHandlers } from '../../../src/daemons/workflow/domain/ends/end-handlers.ts';
import { createRunMessages } from '../../../src/daemons/workflow/run-messages.ts';
import { PlatformError } from '../../../src/kit/errors/errors.ts';
import { seconds } from '../../../src/kit/time/duration.ts';
import { TEST_KEYS } from '../../support/daemon.ts';
import { endTasks } from './support/end-tasks.ts';

const failure = { message: { type: 'order.failed' } };

/** A send that ends only when the service stops. */
const hangs = (_: unknown, signal: AbortSignal) =>
  new Promise<never>((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(new Error('stopped'))),
  );

test('messages beyond the concurrent sends are sent as soon as slots are free', async () => {
  const { handlers, tasks, sent } = endTasks({ failure, runs: 41 });
  handlers.start();
  await expect.poll(() => tasks.size).toBe(0);
  expect(sent).toHaveLength(41);
});

describe('a gateway that does not answer', () => {
  test('delays no start of a workflow', async () => {
    const { handlers, started, sent } = endTasks({
      failure: [{ message: { type: 'order.failed' } }, { workflow: 'notify' }],
      runs: 80,
      send: hangs,
    });
    handlers.start();
    await expect.poll(() => started.length).toBe(80);
    expect(sent).toHaveLength(30);
  });

  test('ends a send before another process may repeat it', async () => {
    const server = createServer(() => {}).listen(0, '127.0.0.1');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    await expect.poll(() => server.listening).toBe(true);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const send = createRunMessages({ peers: createPeers({ gateway: url }), keys: TEST_KEYS as never });
    const who = { tenantId: 'default', hostId: 'h', requestId: 'r', traceId: 't' };
    const message = { type: 'order.failed', data: null, idempotencyKey: 'end/run_1/0' };
    const since = performance.now();
    await expect(send(who, message, new AbortController().signal)).rejects.toThrow();
    expect(performance.now() - since).toBeLessThan(8000);
  }, 15_000);

  test('leaves slots to other tenants', async () => {
    const { handlers, deps, sent } = endTasks({ failure, runs: 101, send: hangs });
    const { find } = deps.runs;
    deps.runs.find = async (tenantId, id) => {
      const run = await find(tenantId, id);
      return run && { ...run, tenantId: id === 'run_100' ? 'small' : 'large' };
    };
    handlers.start();
    await expect.poll(() => sent.length).toBe(31);
    expect(sent.map(({ idempotencyKey }) => idempotencyKey)).toContain('end/run_100/0');
  });

  test('costs messages without a slot neither an attempt nor more than a few seconds', async () => {
    const isOpen = Promise.withResolvers<void>();
    const { handlers, clock, tasks, logs, sent } = endTasks({
      ...{ failure, runs: 200 },
      async send() {
        await isOpen.promise;
        return { id: 'msg_1' };
      },
    });
    const postponed = () => [...tasks.values()].filter(({ dueAt }) => dueAt <= clock.now() + seconds(2));
    handlers.start();
    await expect.poll(() => postponed().length).toBe(120);
    expect(postponed().filter(({ dueAt }) => dueAt < clock.now() + seconds(1))).toEqual([]);
    clock.advance(500);
    expect(sent).toHaveLength(30);
    isOpen.resolve();
    await expect.poll(() => tasks.size).toBe(120);
    await expect
      .poll(() => {
        clock.advance(250);
        return tasks.size;
      })
      .toBe(0);
    expect(sent).toHaveLength(200);
    expect(logs.lines).toEqual([]);
  });

  test('ends the wait for a slot before the claim ends', async () => {
    const { handlers, clock, tasks, sent } = endTasks({ failure, runs: 41, send: hangs });
    handlers.start();
    await expect.poll(() => sent.length).toBe(30);
    clock.advance(seconds(2));
    const released = () => [...tasks.values()].filter(({ dueAt }) => dueAt < clock.now() + seconds(2));
    await expect.poll(() => released().length).toBe(11);
    expect([...tasks.values()].map(({ attempts }) => attempts)).toEqual(Array(41).fill(0));
  });
});

test('a send that a stop aborts is due at once and does not count as an attempt', async () => {
  const { handlers, deps, clock, tasks, logs, sent } = endTasks({ failure, send: hangs });
  handlers.start();
  await expect.poll(() => sent.length).toBe(1);
  await handlers.stop();
  expect([...tasks.values()]).toMatchObject([{ attempts: 0, dueAt: clock.now() }]);
  expect(logs.lines).toEqual([]);
  const unavailable = async () => {
    throw new PlatformError('SERVICE_UNAVAILABLE', 'The gateway does not answer.');
  };
  const next = new EndHandlers({ ...deps, send: unavailable });
  onTestFinished(() => next.stop());
  next.start();
  await expect.poll(() => logs.lines).toMatchObject([{ level: 'warn', reasonCode: 'SERVICE_UNAVAILABLE' }]);
});
