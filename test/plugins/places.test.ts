import { expect, test } from 'vitest';
import { createPlaces } from '../../src/plugins/backends/container/places.ts';
import { createCall } from '../../src/plugins/backends/worker/call.ts';
import { failureOf, requestFor } from './support.ts';

const callBy = (signal?: AbortSignal) => createCall(requestFor('h.js#h'), signal ? { signal } : {});

test('who waits for a container gets the place in turn; who leaves the queue holds up nobody', async () => {
  const places = createPlaces(1);
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

test('a queue that is full, and one that is closed, turn away what has not begun', async () => {
  const places = createPlaces(1);
  const leave = await places.enter(callBy());
  const queued = Array.from({ length: 16 }, () => failureOf(places.enter(callBy())));
  expect(await failureOf(places.enter(callBy()))).toMatchObject({
    code: 'SERVICE_UNAVAILABLE',
    message: '16 calls wait for a container already.',
  });
  places.close();
  for (const failure of [...(await Promise.all(queued)), await failureOf(places.enter(callBy()))])
    expect(failure).toMatchObject({ code: 'SERVICE_UNAVAILABLE', message: 'The platform is stopping.' });
  leave();
  await places.idle();
});
