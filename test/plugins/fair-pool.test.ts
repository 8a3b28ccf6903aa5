import { describe, expect, test } from 'vitest';
import { manualClock } from '../../src/kit/time/clock.ts';
import { eventually, failureOf, startBackend, type TestBackendOptions } from './support.ts';

/** A backend whose calls run until they are told to end, each noted when it began. */
async function startHeld(options: TestBackendOptions, quotas: object = {}, known = ['flood', 'guest']) {
  const begun: string[] = [];
  const held: Array<() => void> = [];
  const get = async (_: unknown, [key]: unknown[]) => {
    begun.push(key as string);
    await new Promise<void>((resolve) => held.push(resolve));
    return {};
  };
  const started = await startBackend({ ...options, services: { state: { get } } });
  const { backend, call } = started;
  const hold = (tenantId: string, name = tenantId): Promise<unknown> => {
    const outcome = call('attacks.js#holdsOn', { tenantId, input: name, permissions: { quotas } });
    // A test that fails leaves calls behind, which fail with the backend.
    outcome.catch(() => {});
    return outcome;
  };
  // Until a process is there, all wait; until a second tenant has come, nothing is kept for others.
  for (const tenantId of known) await call('attacks.js#ok', { tenantId, permissions: { quotas } });
  return {
    ...started,
    begun,
    hold,
    /** Lets the call that began first end. */
    endOne: () => held.shift()?.(),
    /** Calls that run and that wait. */
    load: () =>
      backend.stats().reduce((sum, { running, queued }) => [sum[0]! + running, sum[1]! + queued], [0, 0]),
    async finish(calls: Array<Promise<unknown>>) {
      const timer = setInterval(() => held.shift()?.(), 1);
      await Promise.all(calls);
      clearInterval(timer);
    },
  };
}

const times = <Value>(count: number, make: (index: number) => Value) =>
  Array.from({ length: count }, (_, i) => make(i));

describe('a tenant that floods a plugin', () => {
  test('leaves a quarter of the line to others, who run next whatever waits before them', async () => {
    const { hold, begun, load, endOne, finish } = await startHeld(
      { config: { maxProcesses: 1 } },
      { queue: 16 },
    );
    const flood = times(13, (index) => hold('flood', `flood ${index}`));
    await eventually(() => begun.length === 1);
    expect(load()).toEqual([1, 12]);
    const refused = await failureOf(hold('flood'));
    expect([refused.code, refused.message]).toEqual([
      'SERVICE_UNAVAILABLE',
      'Plugin attacker takes no more calls: the namespace "flood" has used its share of the queue; the rest is reserved for other namespaces.',
    ]);
    expect(refused.headers['retry-after']).toMatch(/^\d+$/);

    const others = [hold('a', 'a 0'), hold('a', 'a 1'), hold('b', 'b 0')];
    endOne();
    await eventually(() => begun.length === 2);
    endOne();
    await eventually(() => begun.length === 3);
    await finish([...flood, ...others]);
    // In turns: one of each, and each tenant's own in the order they came.
    expect(begun.slice(0, 6)).toEqual(['flood 0', 'flood 1', 'a 0', 'b 0', 'flood 2', 'a 1']);
    expect(begun.slice(6)).toEqual(times(10, (index) => `flood ${index + 3}`));
  });

  test('leaves a quarter of the places to others, who need not wait at all', async () => {
    const { hold, begun, load, finish } = await startHeld(
      { config: { maxProcesses: 2 } },
      { concurrency: 4 },
    );
    const flood = times(9, () => hold('flood'));
    await eventually(() => begun.length === 6);
    expect(load()).toEqual([6, 3]);
    const other = hold('other');
    await eventually(() => begun.includes('other'));
    expect(load()).toEqual([7, 3]);
    await finish([...flood, other]);
    expect(begun.length).toBe(10);
  });

  test('gets its places back from calls that time out and processes that die', async () => {
    const { hold, call, begun, load, finish } = await startHeld(
      { config: { maxProcesses: 1 } },
      { concurrency: 4 },
    );
    const permissions = { quotas: { concurrency: 4 } };
    const flood = (handler: string, input?: unknown) =>
      failureOf(call(handler, { tenantId: 'flood', input, permissions, timeoutMs: 700 }));
    await Promise.all(times(3, () => flood('attacks.js#hangs')));
    await Promise.all(times(2, () => flood('attacks.js#hangs')).concat(flood('attacks.js#exits', 3)));
    for (const tenantId of ['flood', 'guest']) await call('attacks.js#ok', { tenantId, permissions });
    const after = times(4, () => hold('flood'));
    await eventually(() => begun.length === 3);
    expect(load()).toEqual([3, 1]);
    await finish(after);
  });

  test('has it all until another comes, and leaves a quarter from then on', async () => {
    const { hold, begun, load, endOne, finish } = await startHeld(
      { config: { maxProcesses: 1 } },
      { concurrency: 4, queue: 4 },
      ['flood'],
    );
    const calls = times(8, () => hold('flood'));
    await eventually(() => begun.length === 4);
    expect(load()).toEqual([4, 4]);
    expect((await failureOf(hold('flood'))).message).toBe(
      'Plugin attacker takes no more calls: 4 calls are waiting already.',
    );
    endOne();
    await eventually(() => begun.length === 5);
    const other = hold('other');
    endOne();
    await eventually(() => begun.includes('other'));
    for (let i = 0; i < 3; i++) endOne();
    await eventually(() => begun.length === 9);
    endOne();
    await other;
    const late = hold('flood');
    expect(load()).toEqual([3, 1]);
    await finish([...calls, late]);
  });

  test('gives up a process where each serves one tenant, after a second of having it to itself', async () => {
    const clock = manualClock();
    const config = { maxProcesses: 1, isolation: 'tenant' } as const;
    const { hold, begun, endOne, finish } = await startHeld({ clock, config }, {}, ['flood']);
    const flood = times(6, () => hold('flood'));
    const other = hold('other');
    await eventually(() => begun.length === 1);
    endOne();
    await eventually(() => begun.length === 2);
    expect(begun).toEqual(['flood', 'flood']);
    clock.advance(1000);
    endOne();
    await eventually(() => begun.length === 3);
    expect(begun).toEqual(['flood', 'flood', 'other']);
    await finish([...flood, other]);
    expect(begun.slice(3)).toEqual(['flood', 'flood', 'flood', 'flood']);
  });
});
