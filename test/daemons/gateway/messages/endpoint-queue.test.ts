import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EndpointQueue } from '../../../../src/daemons/gateway/domain/messages/dispatch/endpoint-queue.ts';
import type { StoredEndpoint } from '../../../../src/store/ports/index.ts';
import { type Outcome, QueueWorld } from './queue-world.ts';

type Step = (world: QueueWorld, n: number) => boolean;

const STEPS: ReadonlyArray<[weight: number, step: Step]> = [
  [6, (world) => world.publish()],
  [6, (world) => world.accept()],
  [10, (world) => world.step()],
  [4, (world, n) => world.finish(n, 'succeeded')],
  [4, (world, n) => world.finish(n, 'retry')],
  [1, (world, n) => world.finish(n, 'dead')],
  [1, (world, n) => world.skip(n)],
  [1, (world, n) => world.putBack(n)],
  [5, (world) => world.store()],
  [5, (world) => world.notice()],
  [5, (world) => world.read()],
  [5, (world) => world.readNext()],
  [5, (world) => world.endLoad()],
  [1, (world) => world.failLoad()],
  [2, (world) => world.scan()],
  [2, (world) => world.endScan()],
  [2, (world, n) => world.replay(n)],
  [1, (world) => world.disable()],
  [1, (world) => world.endUnfinished()],
  [2, (world) => world.enable()],
  [4, (world, n) => world.wait(n * 15)],
];
const CHOICES = STEPS.flatMap(([weight, step]) => Array.from({ length: weight }, () => step));

/** Does the chosen step, or the next one that is possible. */
function take(world: QueueWorld, choice: number, n: number): void {
  for (let skipped = 0; skipped < CHOICES.length; skipped++)
    if (CHOICES[(choice + skipped) % CHOICES.length]!(world, n)) return;
}

const steps = fc.array(fc.tuple(fc.nat(CHOICES.length - 1), fc.nat(5)), { maxLength: 120, size: 'max' });

/** Publishes a message and starts its attempt. */
function send(world: QueueWorld): void {
  world.publish();
  world.accept();
  expect(world.step()).toBe(true);
}

function end(world: QueueWorld, outcome: Outcome): void {
  world.finish(0, outcome);
  world.store();
  world.notice();
}

test('a retry that is stored while a load of retries runs is not lost', () => {
  const world = new QueueWorld(false);
  send(world);
  end(world, 'retry');
  send(world);
  end(world, 'succeeded');
  // After a success, two attempts may run at once: one is in flight when the retry is due.
  send(world);
  world.wait(50);
  expect(world.step()).toBe(true);
  world.read();
  world.readNext();
  end(world, 'retry');
  world.endLoad();
  world.drain();
});

test('a delivery that is not sent gives its token back, and counts neither as a success nor as a failure', () => {
  const queue = new EndpointQueue('ep');
  queue.configure({ ordered: false, rateLimitPerSecond: 2 } as StoredEndpoint, 0);
  for (const messageId of ['a', 'b', 'c', 'd'])
    queue.push({
      ...{ messageId, endpointId: 'ep', attempts: 0, tries: 0, isReplay: false, nextAttemptAt: null },
    });
  queue.start(0);
  queue.ended(true);
  for (const messageId of ['b', 'c']) {
    expect(queue.next(0)).toMatchObject({ kind: 'start', delivery: { messageId } });
    queue.start(0);
    queue.skipped();
  }
  expect(queue.isProven).toBe(true);
  expect(queue.next(0)).toMatchObject({ kind: 'start', delivery: { messageId: 'd' } });
  queue.start(0);
  expect(queue.next(0)).toEqual({ kind: 'idle' });
});

test.each([
  ['an ordered', true],
  ['an unordered', false],
])('%s endpoint loses no delivery, sends none twice at once, and keeps its order', (_, isOrdered) => {
  fc.assert(
    fc.property(steps, (chosen) => {
      const world = new QueueWorld(isOrdered);
      for (const [choice, n] of chosen) take(world, choice, n);
      world.drain();
    }),
    { numRuns: 4000 },
  );
});
