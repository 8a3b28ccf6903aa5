import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { settle, startStopped } from './scripted-pool.ts';
import { failureOf, startBackend } from './support.ts';

/** Interval at which the pool checks processes with calls that were sent ahead. */
const CHECK_MS = 20;

describe('a process that is blocked after a result', () => {
  /** A stopped pool whose process has ended call `a` after a second, and is blocked before call `b`. */
  async function startBlocked() {
    const { run, alive, pool, ran, passTime } = await startStopped();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const calls = ['a', 'b', 'c'].map((id) => run(id));
    await settle();
    const blocked = alive()[0]!;
    passTime(1000);
    blocked.finishAndBlock();
    await settle();
    /** Lets time pass, at the end of which the pool checks its processes. */
    async function pass(ms: number) {
      passTime(ms);
      vi.advanceTimersByTime(CHECK_MS);
      await settle();
    }
    async function finishAll() {
      while (alive()[0]!.running !== undefined) {
        alive()[0]!.finish();
        await settle();
      }
      expect(await Promise.all(calls)).toEqual(['a', 'b', 'c']);
      expect(ran).toEqual(['a', 'b', 'c']);
      expect(pool.stats()).toMatchObject({ running: 0, queued: 0 });
    }
    return { blocked, passTime, pass, finishAll };
  }

  test('is ended after five seconds, and its calls run in the next one', async () => {
    const { blocked, pass, finishAll } = await startBlocked();
    await pass(4990);
    expect(blocked.isAlive).toBe(true);
    await pass(20);
    expect(blocked.isAlive).toBe(false);
    await finishAll();
  });

  test('is left alone if it starts the next call late', async () => {
    const { blocked, pass, finishAll } = await startBlocked();
    await pass(4999);
    blocked.startNext();
    await settle();
    await pass(6000);
    expect(blocked.isAlive).toBe(true);
    await finishAll();
  });

  test('is left alone if its next frames arrived while the service was busy', async () => {
    const { blocked, passTime, finishAll } = await startBlocked();
    // The check and the frame are due at the same time.
    passTime(6000);
    blocked.startNext();
    vi.advanceTimersByTime(CHECK_MS);
    await settle();
    expect(blocked.isAlive).toBe(true);
    await finishAll();
  });

  test('is left alone if the service was busy during the check', async () => {
    const { blocked, passTime } = await startBlocked();
    vi.advanceTimersByTime(CHECK_MS);
    passTime(6000);
    await settle();
    expect(blocked.isAlive).toBe(true);
  });

  test('is replaced in a real pool, and the reason is logged', async () => {
    const { call, logs } = await startBackend({ config: { maxProcesses: 1 } });
    for (let i = 0; i < 60; i++) await call('ahead.js#quick');
    const inputs = ['forges its result and blocks', 'b', 'c', 'd', 'e', 'f'];
    expect(await Promise.all(inputs.map((input) => call('ahead.js#quick', { input })))).toEqual(inputs);
    const warning = logs.lines.find(({ level }) => level === 'warn');
    expect(warning?.message).toMatch(
      /was ended because code that ran after a result blocked it for 5000 ms\.$/,
    );
  });
});

describe('a process that reports starts of calls while another one runs', () => {
  test('is ended, and its calls count as lost', async () => {
    const { run, alive, ran } = await startStopped();
    const failures = ['a', 'b'].map((id) => failureOf(run(id)));
    const last = run('c');
    await settle();
    alive()[0]!.send({ type: 'started', executionId: 'b' });
    for (const { details } of await Promise.all(failures)) expect(details.reason).toBe('protocol');
    await settle();
    alive()[0]!.finish();
    expect(await last).toBe('c');
    expect(ran).toEqual(['a', 'c']);
  });

  test('receives no more frames', async () => {
    const { run, alive } = await startStopped();
    const caller = new AbortController();
    for (const id of ['a', 'b']) void run(id);
    const cancelled = failureOf(run('c', { signal: caller.signal }));
    await settle();
    const [forger] = alive();
    forger!.onKilled = () => caller.abort();
    forger!.send({ type: 'started', executionId: 'b' });
    expect((await cancelled).details).toEqual({ reason: 'cancelled' });
    await settle();
    expect(forger).toMatchObject({ isAlive: false, late: '' });
  });

  test('releases its slot once', async () => {
    const { run, alive, pool } = await startStopped({ maxProcesses: 4 });
    async function finishAll() {
      while (pool.stats().running + pool.stats().queued > 0) {
        for (const runner of alive()) runner.finish();
        await settle();
      }
    }
    for (let i = 0; i < 8; i++) void run(`call ${i}`);
    await settle();
    const [forger] = alive();
    forger!.send({ type: 'started', executionId: forger!.held[0] });
    await settle();
    expect(forger!.isAlive).toBe(false);
    await finishAll();
    void run('of another tenant', {}, { tenantId: 'other' });
    await settle();
    await finishAll();
    // From now on, one tenant may hold three of the four slots.
    for (let i = 0; i < 4; i++) void run(`next ${i}`);
    await settle();
    expect(pool.stats()).toMatchObject({ running: 3, queued: 1 });
    await finishAll();
  });
});

test('a late log line of an earlier execution with the same id does not count as a start', async () => {
  const { run, alive, ran } = await startStopped();
  const calls = ['a', 'b'].map((id) => run(id));
  await settle();
  const [runner] = alive();
  runner!.send({ type: 'log', executionId: 'b', level: 'info', message: 'late' });
  await settle();
  expect(runner).toMatchObject({ isAlive: true, running: 'a', held: ['b'] });
  runner!.finish();
  await settle();
  runner!.finish();
  expect(await Promise.all(calls)).toEqual(['a', 'b']);
  expect(ran).toEqual(['a', 'b']);
});

test('a process that returns a call that was not recalled is ended, and the call runs once', async () => {
  const { run, alive, ran } = await startStopped();
  const failure = failureOf(run('a'));
  const second = run('b');
  await settle();
  const [forger] = alive();
  forger!.send({ type: 'returned', executionId: 'b' });
  expect(await failure).toMatchObject({
    message: expect.stringContaining('was ended because it returned a call that was not recalled'),
    details: { reason: 'protocol' },
  });
  expect(forger!.isAlive).toBe(false);
  await settle();
  alive()[0]!.finish();
  expect(await second).toBe('b');
  expect(ran).toEqual(['a', 'b']);
});

describe('a call whose wait limit expires in a process', () => {
  async function startExpiring() {
    const started = await startStopped();
    const first = started.run('a', {}, { timeoutMs: 60_000 });
    const second = started.run('b', {}, { timeoutMs: 1000 });
    let isSettled = false;
    const settled = () => {
      isSettled = true;
    };
    second.then(settled, settled);
    await settle();
    const [runner] = started.alive();
    expect(runner!.held).toEqual(['b']);
    runner!.isBlocked = true;
    return { ...started, first, second, runner: runner!, isSettled: () => isSettled };
  }

  test('runs if it has started in the meantime', async () => {
    const { clock, runner, first, second, isSettled, ran } = await startExpiring();
    clock.advance(15_000);
    await settle();
    expect(isSettled()).toBe(false);
    runner.finish();
    await settle();
    runner.finish();
    expect(await Promise.all([first, second])).toEqual(['a', 'b']);
    expect(ran).toEqual(['a', 'b']);
  });

  test('fails once the process has returned it', async () => {
    const { clock, runner, first, second, ran, pool } = await startExpiring();
    clock.advance(15_000);
    await settle();
    runner.unblock();
    expect(await failureOf(second)).toMatchObject({ code: 'SERVICE_UNAVAILABLE' });
    expect(pool.stats()).toMatchObject({ running: 1, queued: 0 });
    runner.finish();
    expect(await first).toBe('a');
    expect(ran).toEqual(['a']);
  });

  test('fails once the process has ended without starting it', async () => {
    const { clock, runner, first, second, isSettled, ran, passTime } = await startExpiring();
    passTime(21);
    clock.advance(15_000);
    await settle();
    expect(isSettled()).toBe(false);
    runner.die();
    expect(await failureOf(second)).toMatchObject({
      code: 'SERVICE_UNAVAILABLE',
      message:
        'Plugin scripted did not start the call within 15000 ms: it waited behind a call that blocks its process.',
    });
    expect((await failureOf(first)).details).toEqual({ reason: 'exit', exitCode: 5 });
    expect(ran).toEqual(['a']);
  });
});

test('the time after which a refused call can be retried includes calls that were sent ahead', async () => {
  const { run, alive, clock } = await startStopped({ maxQueue: 4 });
  const calls = ['a', 'b', 'c', 'd', 'e'].map((id) => run(id, {}, { timeoutMs: 60_000 }));
  await settle();
  expect(alive()[0]!.held).toEqual(['b', 'c', 'd', 'e']);
  alive()[0]!.finish();
  await settle();
  // The average of 81 ms after two quick calls becomes 0.9 * 81 ms + 0.1 * 10 s.
  clock.advance(10_000);
  alive()[0]!.finish();
  await settle();
  calls.push(...['f', 'g'].map((id) => run(id)));
  await settle();
  expect(alive()[0]).toMatchObject({ running: 'c', held: ['d', 'e', 'f', 'g'] });
  const refused = await failureOf(run('h'));
  expect(refused.details).toEqual({ reason: 'queue_full', retryAfterSeconds: 6 });
  while (alive()[0]!.running !== undefined) {
    alive()[0]!.finish();
    await settle();
  }
  await Promise.all(calls);
});
