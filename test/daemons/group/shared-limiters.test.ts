import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Answer, createLink, type Frame, type Link } from '../../../src/daemons/group/link.ts';
import type { Member, PrimaryProcess, SiblingProcess } from '../../../src/daemons/group/process-group.ts';
import { sharedLimiters } from '../../../src/daemons/group/shared-limiters.ts';
import type { CreateLimiter, SharedLimiter } from '../../../src/kit/limits/rate-limiter.ts';
import { type ManualClock, manualClock } from '../../../src/kit/time/clock.ts';

const MINUTE = 60_000;

/** A primary and its siblings in one process, their frames on the way for a turn each, in order. */
function group(siblings: number): { clock: ManualClock; create: CreateLimiter[]; frames: () => number } {
  const clock = manualClock();
  let sent = 0;
  const members: Member[] = [];
  const topics = new Map<string, Answer<Member>>();
  const all: CreateLimiter[] = [];
  const primary = {
    role: 'primary',
    size: siblings + 1,
    members: () => members,
    answer: (topic: string, answer: Answer<Member>) => void topics.set(topic, answer),
    onLost: () => {},
  } as unknown as PrimaryProcess;
  all.push(sharedLimiters(primary, clock));
  for (let place = 2; place <= siblings + 1; place++) {
    const own = new Map<string, Answer<undefined>>();
    const to = (link: () => Link) => (frame: Frame) => {
      sent++;
      setImmediate(() => link().receive(structuredClone(frame)));
      return true;
    };
    const member = { place, pid: place } as Member;
    const down: Link = createLink({ send: to(() => up), answers: topics, from: member });
    const up: Link = createLink({ send: to(() => down), answers: own, from: undefined });
    members.push(Object.assign(member, { ask: down.ask, call: down.call }));
    const sibling = {
      role: 'sibling',
      place,
      primary: up,
      answer: (topic: string, answer: Answer<undefined>) => void own.set(topic, answer),
    } as unknown as SiblingProcess;
    all.push(sharedLimiters(sibling, clock));
  }
  return { clock, create: all, frames: () => sent };
}

const allowed = async (limiter: SharedLimiter, limit: number) => (await limiter.take('key', limit)).allowed;

test('exactly the limit is granted, in whatever order and concurrency processes call', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 400 }),
      fc.boolean(),
      fc.array(fc.record({ at: fc.nat(2), calls: fc.integer({ min: 1, max: 90 }), together: fc.boolean() }), {
        minLength: 1,
        maxLength: 12,
      }),
      async (limit, exact, bursts) => {
        const { create } = group(2);
        const limiters = create.map((make) => make('test', { windowMs: MINUTE, exact }));
        let through = 0;
        let asked = 0;
        const running: Promise<void>[] = [];
        for (const { at, calls, together } of bursts) {
          asked += calls;
          const burst = Promise.all(Array.from({ length: calls }, () => allowed(limiters[at]!, limit))).then(
            (verdicts) => {
              through += verdicts.filter(Boolean).length;
            },
          );
          if (together) running.push(burst);
          else await burst;
        }
        await Promise.all(running);
        expect(through).toBe(Math.min(limit, asked));
      },
    ),
    { numRuns: 60 },
  );
});

test('borrowed permits are recalled before a call is refused', async () => {
  const { create } = group(2);
  const [primary, one, two] = create.map((make) => make('test', { windowMs: MINUTE }));
  for (const sibling of [one!, two!]) expect(await allowed(sibling, 1000)).toBe(true);
  let through = 2;
  while (await allowed(primary!, 1000)) through++;
  expect(through).toBe(1000);
  expect(await allowed(one!, 1000)).toBe(false);
});

test('most calls of a sibling process need no query, and a flood of refused ones hardly any', async () => {
  const { create, frames } = group(1);
  const sibling = create[1]!('test', { windowMs: MINUTE });
  for (let i = 0; i < 10_000; i++) await sibling.take('key', 10_000);
  expect(frames()).toBeLessThan(200);
  const before = frames();
  for (let i = 0; i < 10_000; i++) expect(await allowed(sibling, 10_000)).toBe(false);
  expect(frames() - before).toBeLessThan(10);
});

test('a new window begins for all processes at once', async () => {
  const { create, clock } = group(1);
  const [primary, sibling] = create.map((make) => make('test', { windowMs: MINUTE }));
  for (let i = 0; i < 10; i++) expect(await allowed(i % 2 === 0 ? primary! : sibling!, 10)).toBe(true);
  expect([await allowed(primary!, 10), await allowed(sibling!, 10)]).toEqual([false, false]);
  clock.advance(MINUTE);
  expect([await allowed(sibling!, 10), await allowed(primary!, 10)]).toEqual([true, true]);
});

test('unused borrowed permits are returned, and no window exceeds the limit', async () => {
  const { create, clock } = group(1);
  const [primary, sibling] = create.map((make) => make('test', { windowMs: MINUTE }));
  for (let i = 0; i < 20; i++) {
    expect(await allowed(sibling!, 20)).toBe(true);
    clock.advance(2000);
  }
  expect([await allowed(sibling!, 20), await allowed(primary!, 20)]).toEqual([false, false]);
  clock.advance(20_000);
  expect([await allowed(primary!, 20), await allowed(primary!, 20)]).toEqual([true, false]);
});

test('an exhausted exact limit is known to all processes, without a query', async () => {
  const { create, frames } = group(2);
  const [primary, one, two] = create.map((make) => make('test', { windowMs: MINUTE, exact: true }));
  for (let i = 0; i < 3; i++) await one!.take('key', 3);
  await new Promise((resolve) => setTimeout(resolve, 10));
  const before = frames();
  for (const limiter of [primary!, one!, two!]) expect(limiter.peek('key', 3).allowed).toBe(false);
  expect(two!.peek('other', 3).allowed).toBe(true);
  expect(frames()).toBe(before);
});

test('a returned permit may be used by another process', async () => {
  const { create, clock } = group(1);
  const [primary, sibling] = create.map((make) => make('test', { windowMs: MINUTE, exact: true }));
  expect(await allowed(sibling!, 1)).toBe(true);
  expect(await allowed(primary!, 1)).toBe(false);
  sibling!.giveBack('key');
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect(await allowed(primary!, 1)).toBe(true);
  primary!.giveBack('key');
  clock.advance(1000);
  expect(await allowed(sibling!, 1)).toBe(true);
});
