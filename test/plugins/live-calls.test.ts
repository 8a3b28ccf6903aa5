import { expect, test } from 'vitest';
import { createLogger } from '../../src/kit/telemetry/logger.ts';
import { manualClock } from '../../src/kit/time/clock.ts';
import { LiveCalls } from '../../src/plugins/backends/worker/live-calls.ts';
import type { PlatformCallContext, StreamSink } from '../../src/plugins/index.ts';
import { captureLogs } from '../support/daemon.ts';
import { eventually, failureOf, requestFor, startBackend } from './support.ts';

/** `ctx.state` that never answers, and tells of the signals it was given. */
function silentState() {
  const signals: AbortSignal[] = [];
  const get = ({ signal }: PlatformCallContext): Promise<unknown> => {
    signals.push(signal);
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  };
  return { services: { state: { get } }, signals };
}

test.each(['returns', 'throws'])(
  'a platform call whose handler %s without waiting is cancelled',
  async (how) => {
    const { services, signals } = silentState();
    const { backend, logs } = await startBackend({ services });
    const outcome = backend
      .run(requestFor('attacks.js#leavesCallBehind', { input: how }))
      .catch((error) => error);
    expect(await outcome).toMatchObject(how === 'throws' ? { code: 'EXECUTION_ERROR' } : { result: 'gone' });
    expect(signals).toHaveLength(1);
    expect(signals[0]).toMatchObject({
      aborted: true,
      reason: { code: 'EXECUTION_ERROR', message: 'The handler ended without awaiting this call.' },
    });
    expect(logs.lines.filter(({ message }) => String(message).includes('state.get failed'))).toEqual([]);
  },
);

test('a platform call in flight is cancelled at the timeout, and when the caller disconnects', async () => {
  const clock = manualClock();
  const { services, signals } = silentState();
  const { backend } = await startBackend({ services, clock });
  const timedOut = failureOf(
    backend.run(requestFor('attacks.js#leavesCallBehind', { input: 'hangs', timeoutMs: 1000 })),
  );
  await eventually(() => signals.length === 1);
  expect(signals[0]?.aborted).toBe(false);
  clock.advance(1000);
  expect(signals[0]).toMatchObject({ aborted: true, reason: { code: 'EXECUTION_TIMEOUT' } });
  expect((await timedOut).code).toBe('EXECUTION_TIMEOUT');

  const caller = new AbortController();
  const left = failureOf(
    backend.run(requestFor('attacks.js#leavesCallBehind', { input: 'hangs' }), { signal: caller.signal }),
  );
  await eventually(() => signals.length === 2);
  caller.abort();
  expect(signals[1]?.aborted).toBe(true);
  expect((await left).details).toEqual({ reason: 'cancelled' });
});

/** A reader that takes pieces only when told to. */
function slowReader() {
  const waiting: Array<() => void> = [];
  const sink: StreamSink = {
    start: () => {},
    write: () => new Promise((resolve) => waiting.push(resolve)),
  };
  return { sink, waiting };
}

test('who leaves at the end of a stream does not end the process that sent it', async () => {
  const { backend, call } = await startBackend({ config: { maxProcesses: 1 } });
  const { sink, waiting } = slowReader();
  const caller = new AbortController();
  const outcome = failureOf(
    backend.run(requestFor('attacks.js#streamsBriefly'), { stream: sink, signal: caller.signal }),
  );
  await eventually(() => waiting.length === 1 && backend.stats()[0]?.running === 0);
  const [pid] = backend.stats()[0]!.pids;
  const slow = call('attacks.js#ok');
  caller.abort();
  expect((await outcome).details).toEqual({ reason: 'cancelled' });
  await slow;
  // Longer than a handler that was called off may take to stop.
  await new Promise((resolve) => setTimeout(resolve, 800));
  expect(await call('attacks.js#ok')).toMatchObject({ pid });
});

test('a reader that stalls is given up also once the handler is done; one that reads slowly is not', async () => {
  const clock = manualClock();
  const { backend } = await startBackend({ clock });
  const { sink, waiting } = slowReader();
  const outcome = failureOf(
    backend.run(requestFor('attacks.js#streamsBriefly', { timeoutMs: 1000 }), { stream: sink }),
  );
  await eventually(() => waiting.length === 1 && backend.stats()[0]?.running === 0);
  for (let taken = 1; taken < 5; taken++) {
    clock.advance(999);
    waiting[taken - 1]!();
    await eventually(() => waiting.length === taken + 1);
  }
  clock.advance(1000);
  expect((await outcome).code).toBe('EXECUTION_TIMEOUT');
});

test.each([
  [{ kind: 'memory' as const, usedMb: 300, limitMb: 256 }, [expect.stringMatching(/used 300 MB of memory/)]],
  [{ kind: 'idle' as const }, []],
])('a process that ends between calls is reported when it filled its memory (%o)', (ended, told) => {
  const logs = captureLogs();
  const clock = manualClock();
  const calls = new LiveCalls({
    pluginId: 'attacker',
    services: {},
    sink: { write: () => {} },
    logger: createLogger({ serviceId: 'test', output: logs, clock }),
    clock,
    send: () => {},
    endProcess: () => {},
    onFree: () => {},
  });
  const exit = { code: null, signal: 'SIGKILL', fatal: null, stderr: '', memoryMb: 256 };
  calls.failAll({ ...exit, ended, wasReady: true, hadLoaded: true });
  expect(logs.lines.map(({ message }) => message)).toEqual(told);
});
