import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { HandlerDurations } from '../../src/plugins/backends/worker/handler-durations.ts';
import { RunnerProcess } from '../../src/plugins/backends/worker/runner-process.ts';
import type { RunOptions } from '../../src/plugins/index.ts';
import {
  type ScriptedRunner,
  type scriptedPool,
  settle,
  startStopped,
  startWarmPool,
} from './scripted-pool.ts';
import { eventually, failureOf, startBackend } from './support.ts';

describe('a busy process', () => {
  test('receives up to four quick calls ahead, which run one at a time and in order', async () => {
    const { run, alive, pool, ran } = await startStopped();
    const calls = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => run(id));
    await settle();
    expect(alive()[0]).toMatchObject({ running: 'a', held: ['b', 'c', 'd', 'e'] });
    expect(pool.stats()).toMatchObject({ running: 1, queued: 5 });
    alive()[0]!.finish();
    await settle();
    expect(alive()[0]).toMatchObject({ running: 'b', held: ['c', 'd', 'e', 'f'] });
    for (let i = 0; i < 5; i++) alive()[0]!.finish();
    expect(await Promise.all(calls)).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
    expect(ran).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  });

  test('receives nothing ahead while another process can start or starts', async () => {
    const { run, alive } = await startStopped({ maxProcesses: 2 });
    alive()[1]!.die();
    await settle();
    void run('a');
    void run('b');
    while (alive().length < 2) await Promise.resolve();
    void run('c');
    await settle();
    expect(alive().map(({ running, held }) => [running, held])).toEqual([
      ['a', ['c']],
      ['b', []],
    ]);
  });

  test.each([
    ['with several calls at a time', { concurrency: 2 }],
    ['of one tenant', { separateTenants: true }],
  ])('receives nothing ahead: processes %s', async (_, options) => {
    const { run, alive } = await startStopped(options);
    for (const id of ['a', 'b', 'c', 'd']) void run(id);
    await settle();
    expect(alive()[0]!.held).toEqual([]);
  });

  const alone: RunOptions = { alone: true };
  test.each<[string, Array<[id: string, options?: RunOptions, request?: object]>]>([
    ['behind a call that must be alone', [['a', alone], ['b']]],
    ['if the next call must be alone', [['a'], ['b', alone]]],
    ['behind a call of another tenant', [['a'], ['b', {}, { tenantId: 'other' }]]],
    ['while a call of another tenant waits', [['a'], ['b', {}, { tenantId: 'other' }], ['c']]],
  ])('receives nothing ahead %s', async (_, calls) => {
    const { run, alive } = await startStopped();
    for (const call of calls) void run(...call);
    for (const running of ['a', 'b']) {
      await settle();
      expect(alive()[0]).toMatchObject({ running, held: [] });
      alive()[0]!.finish();
    }
  });

  test('receives nothing ahead before it has ended its first call', async () => {
    const { run, alive } = await startStopped();
    alive()[0]!.die();
    await settle();
    for (const id of ['a', 'b', 'c']) void run(id);
    await eventually(() => alive()[0]?.running === 'a');
    await settle();
    expect(alive()[0]!.held).toEqual([]);
    alive()[0]!.finish();
    await settle();
    expect(alive()[0]).toMatchObject({ running: 'b', held: ['c'] });
  });

  test('receives no large call ahead, as it might not read it', async () => {
    const { run, alive } = await startStopped();
    void run('a');
    void run('b', {}, { input: 'x'.repeat(70_000) });
    await settle();
    expect(alive()[0]!.held).toEqual([]);
  });
});

describe('a call that was sent ahead', () => {
  test('runs in another process when its process dies', async () => {
    const { run, alive, ran } = await startStopped();
    const [first, ...others] = [run('a'), run('b'), run('c')];
    const failure = failureOf(first!);
    await settle();
    expect(alive()[0]!.held).toEqual(['b', 'c']);
    alive()[0]!.die();
    expect(await failure).toMatchObject({
      code: 'EXECUTION_ERROR',
      details: { reason: 'exit', exitCode: 5 },
    });
    expect((await failure).details.interrupted).toBeUndefined();
    await eventually(() => alive()[0]?.running !== undefined);
    for (let i = 0; i < 2; i++) {
      alive()[0]!.finish();
      await settle();
    }
    expect(await Promise.all(others)).toEqual(['b', 'c']);
    expect(ran).toEqual(['a', 'b', 'c']);
  });

  test('is lost with its process once it has started', async () => {
    const { run, alive, ran } = await startStopped();
    const [first, second] = [run('a'), run('b')];
    const failure = failureOf(second!);
    await settle();
    alive()[0]!.finish();
    alive()[0]!.die();
    expect(await first).toBe('a');
    expect((await failure).details).toEqual({ reason: 'exit', exitCode: 5 });
    await settle();
    expect(ran).toEqual(['a', 'b']);
  });

  test('goes to a free process when the call before it turns out to be slow', async () => {
    const { run, alive, ran, passTime } = await startStopped({ maxProcesses: 2 });
    const calls = ['a', 'b', 'c', 'd'].map((id) => run(id));
    await settle();
    const [slow, other] = alive() as [ScriptedRunner, ScriptedRunner];
    expect([slow.held.length, other.held.length]).toEqual([1, 1]);
    passTime(21);
    await eventually(() => slow.held.length + other.held.length === 0);
    await settle();
    for (let i = 0; i < 3; i++) {
      other.finish();
      await settle();
    }
    expect(ran.slice(2)).toEqual(['c', 'd']);
    slow.finish();
    expect(await Promise.all(calls)).toEqual(['a', 'b', 'c', 'd']);
  });

  test('can be cancelled before it starts, without harm to the call before it', async () => {
    const { run, alive, pool, ran } = await startStopped();
    const caller = new AbortController();
    const [first, second] = [run('a'), run('b', { signal: caller.signal })];
    const failure = failureOf(second!);
    await settle();
    caller.abort();
    expect((await failure).details).toEqual({ reason: 'cancelled' });
    await settle();
    expect(alive()[0]).toMatchObject({ running: 'a', held: [] });
    expect(pool.stats()).toMatchObject({ running: 1, queued: 0 });
    alive()[0]!.finish();
    expect(await first).toBe('a');
    expect(ran).toEqual(['a']);
  });

  test('is aborted if it starts while its cancellation is on the way', async () => {
    const { run, alive, pool } = await startStopped();
    const caller = new AbortController();
    const [first, second] = [run('a'), run('b', { signal: caller.signal })];
    const failure = failureOf(second!);
    await settle();
    alive()[0]!.finish();
    caller.abort();
    expect((await failure).details).toEqual({ reason: 'cancelled' });
    expect(await first).toBe('a');
    await eventually(() => pool.stats().running === 0);
    expect(await finished(run('c'), alive)).toBe('c');
  });

  test('waits no longer than in the queue', async () => {
    const { run, clock, alive } = await startStopped();
    const first = run('a', {}, { timeoutMs: 60_000 });
    const failure = failureOf(run('b', {}, { timeoutMs: 1000 }));
    await settle();
    expect(alive()[0]!.held).toEqual(['b']);
    clock.advance(15_000);
    expect(await failure).toMatchObject({
      code: 'SERVICE_UNAVAILABLE',
      message: 'No process of plugin scripted became free within 15000 ms; all are busy.',
    });
    alive()[0]!.finish();
    expect(await first).toBe('a');
  });

  test('does not count its wait towards its time limit', async () => {
    const { run, clock, alive } = await startStopped();
    const calls = [run('a', {}, { timeoutMs: 60_000 }), run('b', {}, { timeoutMs: 20_000 })];
    await settle();
    clock.advance(14_000);
    alive()[0]!.finish();
    await settle();
    clock.advance(19_999);
    alive()[0]!.finish();
    expect(await Promise.all(calls)).toEqual(['a', 'b']);
  });

  test('fails with the pool when that closes', async () => {
    const { run, pool } = await startStopped();
    const failures = [failureOf(run('a')), failureOf(run('b'))];
    await settle();
    await pool.close();
    expect((await Promise.all(failures)).map(({ code }) => code)).toEqual([
      'EXECUTION_ERROR',
      'SERVICE_UNAVAILABLE',
    ]);
  });
});

async function finished(call: Promise<unknown>, alive: ReturnType<typeof scriptedPool>['alive']) {
  await settle();
  for (const runner of alive()) runner.finish();
  return call;
}

test('whatever ends when, each call runs at most once, and fails only if it ran in a process that died', async () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.constant({ type: 'run' as const }) },
    { weight: 4, arbitrary: fc.record({ type: fc.constant('finish' as const), at: fc.nat(1) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('die' as const), at: fc.nat(1) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('block' as const), at: fc.nat(1) }) },
    { weight: 1, arbitrary: fc.record({ type: fc.constant('cancel' as const), at: fc.nat(20) }) },
    { weight: 4, arbitrary: fc.constant({ type: 'settle' as const }) },
    { weight: 1, arbitrary: fc.constant({ type: 'wait' as const }) },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { run, alive, pool, ran } = await startWarmPool({ maxProcesses: 2 });
      const killed = new Set<string>();
      const callers: AbortController[] = [];
      const outcomes: Array<Promise<string>> = [];
      for (const next of steps) {
        const runner = 'at' in next ? alive()[next.at] : undefined;
        if (next.type === 'run') {
          const caller = new AbortController();
          callers.push(caller);
          const id = `call ${outcomes.length}`;
          outcomes.push(run(id, { signal: caller.signal }).then(String, ({ details }) => details.reason));
        } else if (next.type === 'cancel') callers[next.at]?.abort();
        else if (next.type === 'settle') await settle();
        // Longer than a call may run before those behind it are recalled.
        else if (next.type === 'wait') await new Promise((resolve) => setTimeout(resolve, 25));
        else if (next.type === 'finish') runner?.finish();
        else if (runner && next.type === 'block') runner.isBlocked = runner.running !== undefined;
        else if (runner) {
          // A call for an idle process whose end is not known yet would be lost, too.
          if (runner.running === undefined) await settle();
          const { running } = runner;
          runner.die();
          if (running) killed.add(running);
          else await settle();
        }
      }
      const all = Promise.all(outcomes);
      let isOver = false;
      void all.then(() => {
        isOver = true;
      });
      while (!isOver) {
        for (const runner of alive()) runner.finish();
        await settle();
      }
      expect(alive().every(({ overlaps }) => overlaps === 0)).toBe(true);
      expect(new Set(ran).size).toBe(ran.length);
      for (const [index, outcome] of (await all).entries()) {
        const id = `call ${index}`;
        if (callers[index]!.signal.aborted && outcome === 'cancelled') continue;
        expect(outcome).toBe(killed.has(id) ? 'exit' : id);
      }
      expect(pool.stats()).toMatchObject({ running: 0, queued: 0 });
      await pool.close();
    }),
    { numRuns: 60 },
  );
}, 60_000);

describe('in a plugin process', () => {
  /** Processes in which enough calls have run that their handler is known to be quick. */
  async function startQuick(maxProcesses = 1) {
    const assignAhead = vi.spyOn(RunnerProcess.prototype, 'assignAhead');
    onTestFinished(() => assignAhead.mockRestore());
    const started = await startBackend({ config: { maxProcesses } });
    const callMany = (count: number) =>
      Promise.all(Array.from({ length: count }, () => started.call('ahead.js#quick')));
    await callMany(maxProcesses);
    for (let i = 0; i < 60; i++) await started.call('ahead.js#quick');
    // On a busy machine, the handler can seem slow for longer.
    const sendsAhead = async () => {
      await callMany(maxProcesses + 2);
      return assignAhead.mock.calls.length > 0;
    };
    await expect.poll(sendsAhead, { timeout: 15_000 }).toBe(true);
    assignAhead.mockClear();
    // From here on, a busy machine does not change the decision.
    const averageMs = vi.spyOn(HandlerDurations.prototype, 'averageMs').mockReturnValue(0);
    onTestFinished(() => averageMs.mockRestore());
    const ran = () =>
      started.logs.lines.flatMap(({ message }) => /^ran (.*)/.exec(String(message))?.[1] ?? []).sort();
    const callQuick = (input: string, options = {}) =>
      started.call('ahead.js#quick', { input, ...options }) as Promise<string>;
    const sentAhead = () => assignAhead.mock.calls.map(([{ request }]) => request.input);
    return { callQuick, ran, sentAhead };
  }

  test.each([
    ['exits', { code: 'EXECUTION_ERROR', details: { reason: 'exit', exitCode: 5 } }],
    ['blocks', { code: 'EXECUTION_TIMEOUT' }],
  ])('calls behind one that %s run once, in the next process', async (how, expected) => {
    const { callQuick, ran, sentAhead } = await startQuick();
    const first = failureOf(callQuick(how, { timeoutMs: 500 }));
    const others = ['b', 'c', 'd', 'e', 'f', 'g'];
    const calls = others.map((input) => callQuick(input));
    expect(await first).toMatchObject(expected);
    expect(sentAhead()).toContain('b');
    expect(await Promise.all(calls)).toEqual(others);
    expect(ran()).toEqual([...others, how].sort());
  });

  test('the first call of a handler does not count, because it loads code', async () => {
    const note = vi.spyOn(HandlerDurations.prototype, 'note');
    onTestFinished(() => note.mockRestore());
    const { call } = await startBackend({ config: { maxProcesses: 1 } });
    await call('ahead.js#quick');
    expect(note).not.toHaveBeenCalled();
    await call('ahead.js#quick');
    expect(note).toHaveBeenCalledExactlyOnceWith('ahead.js#quick', expect.any(Number));
  });

  test('a call behind one that waits runs once, in another process', async () => {
    const { callQuick, ran, sentAhead } = await startQuick(2);
    const recall = vi.spyOn(RunnerProcess.prototype, 'recall');
    onTestFinished(() => recall.mockRestore());
    const settled: string[] = [];
    const inputs = ['waits', 'b', 'c', 'd'];
    await Promise.all(inputs.map((input) => callQuick(input).then((result) => settled.push(result))));
    expect(sentAhead()).toEqual(expect.arrayContaining(['c', 'd']));
    expect(recall).toHaveBeenCalled();
    expect(settled.at(-1)).toBe('waits');
    expect(ran()).toEqual(['b', 'c', 'd', 'waits']);
  });
});
