import { expect, test } from 'vitest';
import {
  type AttemptSlot,
  AttemptSlots,
  MAX_FAST_BYTES,
  MAX_SLOW_BYTES,
  MAX_UNPROVEN_BYTES,
} from '../../../../src/daemons/gateway/domain/messages/dispatch/attempt-slots.ts';
import { manualClock } from '../../../../src/kit/time/clock.ts';

const BODY = 256 * 1024;

function world() {
  const clock = manualClock(0);
  let freed = 0;
  const slots = new AttemptSlots(clock, () => freed++);
  let count = 0;
  /** Starts attempts of different messages until none is free. */
  const fill = (isProven: boolean, bytes = BODY): AttemptSlot[] => {
    const taken: AttemptSlot[] = [];
    while (slots.isFree(isProven)) taken.push(slots.take(isProven, `m${++count}`, bytes));
    return taken;
  };
  return { clock, slots, fill, freed: () => freed };
}

test('the bodies of attempts in flight have a limit, however slow the endpoints are', () => {
  const { clock, slots, fill } = world();
  // Each second, the attempts before become slow, until the slow ones hold all bytes they may.
  for (let second = 0; second < 20; second++) {
    fill(true);
    clock.advance(1100);
  }
  expect(slots.bytes).toBeLessThanOrEqual(MAX_FAST_BYTES + MAX_SLOW_BYTES + 2 * BODY);
  expect(slots.bytes).toBeGreaterThanOrEqual(MAX_FAST_BYTES + MAX_SLOW_BYTES);
  expect(slots.isFree(true)).toBe(false);
});

test('small bodies use all slots', () => {
  const { clock, slots, fill } = world();
  for (let second = 0; second < 20; second++) {
    fill(true, 1000);
    clock.advance(1100);
  }
  expect(slots.inFlight).toBe(4096 + 512);
});

test('endpoints that failed leave bytes to those that answer', () => {
  const { slots, fill } = world();
  fill(false);
  expect(slots.bytes).toBe(MAX_UNPROVEN_BYTES);
  expect([slots.isFree(false), slots.isFree(true)]).toEqual([false, true]);
  const taken = fill(true);
  expect(taken).toHaveLength((MAX_FAST_BYTES - MAX_UNPROVEN_BYTES) / BODY);
  taken[0]!.free();
  taken[0]!.free();
  expect(slots.isFree(true)).toBe(true);
  expect(slots.bytes).toBe(MAX_FAST_BYTES - BODY);
});

test('a message that many endpoints receive counts once, until its last attempt ends', () => {
  const { clock, slots } = world();
  const taken = Array.from({ length: 300 }, () => slots.take(false, 'one', BODY));
  expect(slots.bytes).toBe(BODY);
  clock.advance(1100);
  expect([slots.bytes, slots.inFlight]).toEqual([BODY, 300]);
  for (const slot of taken.slice(1)) slot.free();
  expect(slots.bytes).toBe(BODY);
  taken[0]!.free();
  expect([slots.bytes, slots.inFlight]).toEqual([0, 0]);
});

test('a body that must be read counts as a large one until its size is known', () => {
  const { slots } = world();
  const slot = slots.take(true, 'one');
  expect(slots.bytes).toBe(BODY);
  slot.resize(10);
  expect(slots.bytes).toBe(10);
  slot.free();
  expect(slots.bytes).toBe(0);
});
