import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { PlatformCallContext } from '../../src/plugins/index.ts';
import { eventually, failureOf, requestFor, startBackend } from './support.ts';

const permissions = { quotas: { concurrency: 3 } };
/** Longer than a handler has to stop once its signal has fired. */
const PAST_GRACE_MS = 1200;

/** One process whose handlers wait for `ctx.state.get` until `answer` is called. */
async function startShared() {
  const answers = new Map<unknown, (value: unknown) => void>();
  const get = (_: PlatformCallContext, [key]: unknown[]): Promise<unknown> =>
    new Promise((resolve) => answers.set(key, (value) => resolve({ value })));
  const shared = await startBackend({ services: { state: { get } }, config: { maxProcesses: 1 } });
  return {
    ...shared,
    answer: (key: string) => answers.get(key)!('answered'),
    /** Starts a call that runs until it is answered. */
    async hold(key: string): Promise<{ outcome: Promise<unknown> }> {
      const outcome = shared.call('attacks.js#holdsOn', { permissions, input: key, timeoutMs: 60_000 });
      outcome.catch(() => {});
      await eventually(() => answers.has(key));
      return { outcome };
    },
  };
}

test('a process ends for a cancelled call that does not stop once the calls beside it are done', async () => {
  const { backend, call, hold, answer } = await startShared();
  const beside = await hold('beside');
  const [pid] = backend.stats()[0]!.pids;
  const caller = new AbortController();
  const stubborn = failureOf(
    backend.run(requestFor('attacks.js#hangs', { permissions }), { signal: caller.signal }),
  );
  await eventually(() => backend.stats()[0]?.running === 2);
  caller.abort();
  expect((await stubborn).details).toEqual({ reason: 'cancelled' });
  await sleep(PAST_GRACE_MS);
  expect(backend.stats()[0]?.pids).toEqual([pid]);
  // It takes no more: the next call has a fresh process.
  const next = call('attacks.js#ok', { permissions }) as Promise<{ pid: number }>;
  await eventually(() => backend.stats()[0]?.queued === 1);
  answer('beside');
  expect(await beside.outcome).toBe('answered');
  expect((await next).pid).not.toBe(pid);
}, 30_000);

test('calls that outlast the grace of a stuck process are lost without fault of theirs', async () => {
  const { backend, hold } = await startShared();
  const beside = [await hold('first'), await hold('second')];
  const caller = new AbortController();
  const stubborn = failureOf(
    backend.run(requestFor('attacks.js#hangs', { permissions }), { signal: caller.signal }),
  );
  await eventually(() => backend.stats()[0]?.running === 3);
  caller.abort();
  await stubborn;
  for (const { outcome } of beside) {
    const { code, details } = await failureOf(outcome);
    expect([code, details]).toEqual(['EXECUTION_ERROR', { reason: 'cancelled', interrupted: true }]);
  }
}, 40_000);
