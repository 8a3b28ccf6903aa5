import { expect, test } from 'vitest';
import { EndpointLoads } from '../../../../src/daemons/gateway/domain/messages/dispatch/endpoint-loads.ts';
import { EndpointQueue } from '../../../../src/daemons/gateway/domain/messages/dispatch/endpoint-queue.ts';
import { manualClock } from '../../../../src/kit/time/clock.ts';
import type { DueDelivery, StoredEndpoint } from '../../../../src/store/ports/index.ts';

const delivery = (messageId: string): DueDelivery => ({
  ...{ messageId, endpointId: 'ep', attempts: 0, tries: 0, isReplay: false, nextAttemptAt: null },
});

/** A queue whose load finds the given messages. `flush` runs while the load waits for ends to be stored. */
async function loaded(options: {
  found: string[];
  publishing?: string[];
  flush?: (queue: EndpointQueue) => void;
}): Promise<EndpointQueue> {
  const { found, publishing = [], flush = () => {} } = options;
  const clock = manualClock(0);
  const queue = new EndpointQueue('ep');
  queue.configure({ ordered: false, rateLimitPerSecond: null } as StoredEndpoint, 0);
  queue.noteStored({ waiting: true, retryAt: null });
  const loads = new EndpointLoads({
    store: {
      waiting: async () => found.map(delivery),
      retries: async () => [],
      nextRetryAt: async () => null,
    },
    ends: { flush: async () => flush(queue) },
    isPublishing: (id) => publishing.includes(id),
    clock,
  });
  expect(queue.next(0)).toEqual({ kind: 'load' });
  await loads.load(queue);
  return queue;
}

function startAll(queue: EndpointQueue): string[] {
  const started: string[] = [];
  for (let step = queue.next(0); step.kind === 'start'; step = queue.next(0)) {
    started.push(step.delivery.messageId);
    queue.start(0);
    queue.ended(true);
    queue.stored(step.delivery.messageId, null);
  }
  return started;
}

test('a message that this process is storing is left to its publish, and sent once', async () => {
  const queue = await loaded({ found: ['a', 'b'], publishing: ['b'] });
  expect(startAll(queue)).toEqual(['a']);
  queue.push(delivery('b'));
  expect(startAll(queue)).toEqual(['b']);
  expect(queue.isEmpty).toBe(true);
});

test('a message that is replayed while the load waits for its end is sent again', async () => {
  // The end of the former attempt is stored before the load reads, so what it reads is the replay.
  const queue = await loaded({ found: ['a'], flush: (waiting) => waiting.stored('a', null) });
  expect(startAll(queue)).toEqual(['a']);
});
