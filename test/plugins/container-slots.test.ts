import { expect, test } from 'vitest';
import { Slots } from '../../src/plugins/backends/container/slots.ts';
import { createCall } from '../../src/plugins/backends/worker/call.ts';
import { failureOf, requestFor } from './support.ts';

const callOf = (tenantId: string) => createCall(requestFor('h.js#h', { tenantId }), {});
const callBy = (signal?: AbortSignal) => createCall(requestFor('h.js#h'), signal ? { signal } : {});

test('containers are assigned in turn; a caller that leaves the queue blocks no other', async () => {
  const places = new Slots(1);
  const leaveFirst = await places.enter(callBy());
  const leaving = new AbortController();
  const second = failureOf(places.enter(callBy(leaving.signal)));
  const third = places.enter(callBy());
  leaving.abort();
  expect((await second).details).toEqual({ reason: 'cancelled' });
  leaveFirst();
  const leaveThird = await third;
  const idle = places.idle();
  leaveThird();
  await idle;
});

test('a full queue, and a closed one, reject calls that have not begun', async () => {
  const places = new Slots(1);
  const leave = await places.enter(callBy());
  const tenants = ['a', 'b', 'c', 'd', 'e'].flatMap((tenantId) => Array<string>(13).fill(tenantId));
  const waiting = tenants.map((tenantId) => failureOf(places.enter(callOf(tenantId))));
  expect(await failureOf(places.enter(callBy()))).toMatchObject({
    code: 'SERVICE_UNAVAILABLE',
    message: 'No container is free: 16 calls are waiting already.',
  });
  places.close();
  const messages = (await Promise.all([...waiting, failureOf(places.enter(callBy()))])).map(
    ({ message }) => message,
  );
  expect(messages.filter((message) => message === 'The platform is stopping.')).toHaveLength(17);
  leave();
  await places.idle();
});

test('a tenant leaves places to others, and who waits takes turns with the others that do', async () => {
  const places = new Slots(4);
  // Nothing is kept for others before there are any.
  (await places.enter(callOf('guest')))();
  const begun: string[] = [];
  const leaving: Array<() => void> = [];
  const calls = [...Array<string>(6).fill('flood'), 'a', 'b', 'b'].map(async (tenantId) => {
    leaving.push(await places.enter(callOf(tenantId)));
    begun.push(tenantId);
  });
  await calls[6];
  expect(begun).toEqual(['flood', 'flood', 'flood', 'a']);
  while (leaving.length > 0) {
    leaving.shift()!();
    await new Promise(setImmediate);
  }
  await Promise.all(calls);
  expect(begun.slice(4)).toEqual(['flood', 'b', 'flood', 'b', 'flood']);
  await places.idle();
});
