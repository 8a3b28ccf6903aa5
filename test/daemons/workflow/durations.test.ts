import { describe, expect, test } from 'vitest';
import { checkDefinition } from '../../../src/daemons/workflow/domain/definition/check-definition.ts';
import { compileDefinition } from '../../../src/daemons/workflow/domain/definition/compile-definition.ts';
import { checkingKinds } from '../../../src/daemons/workflow/step-kinds.ts';
import { days, hours, minutes, seconds } from '../../../src/kit/time/duration.ts';
import { cel, startWorkflow } from './support/workflow.ts';

const compile = (definition: object) => compileDefinition({ id: 'flow', ...definition }, checkingKinds());
const faultsOf = (text: string) => checkDefinition(text, checkingKinds()).faults;

/** The same definition with durations, and with milliseconds. */
const IN_DURATIONS = {
  timeout: '7d',
  cleanUpTimeout: '30s',
  retry: { initial: '500ms', max: '2m', deadline: '1h', classes: { timeout: { initial: '1s', max: '5s' } } },
  jobs: { main: { timeout: '24h', steps: [{ uses: 'set', timeout: '5m', retry: { initial: '3s' } }] } },
};
const IN_MS = {
  timeoutMs: days(7),
  cleanUpTimeoutMs: seconds(30),
  retry: {
    initialMs: 500,
    maxMs: minutes(2),
    deadlineMs: hours(1),
    classes: { timeout: { initialMs: 1000, maxMs: 5000 } },
  },
  jobs: {
    main: {
      timeoutMs: hours(24),
      steps: [{ uses: 'set', timeoutMs: minutes(5), retry: { initialMs: 3000, maxMs: 60_000 } }],
    },
  },
};

test('a definition with durations has the same content and hash as one with milliseconds', () => {
  const [durations, ms] = [compile(IN_DURATIONS), compile(IN_MS)];
  expect(durations.body).toBe(ms.body);
  expect(durations.hash).toBe(ms.hash);
  expect(durations.jobs[0]!.steps[0]!.timeoutMs).toBe(minutes(5));
});

test('a retry without delays keeps its defaults', () => {
  const { retry } = compile({
    retry: { maxAttempts: 2 },
    jobs: { main: { steps: [{ uses: 'set' }] } },
  }).definition;
  expect(retry).toMatchObject({ initialMs: 1000, maxMs: 60_000 });
  expect(retry).not.toHaveProperty('deadlineMs');
});

test('`sleep` is a wait step', () => {
  const short = compile({ jobs: { main: { steps: [{ id: 'nap', sleep: '24h' }] } } });
  const long = compile({
    jobs: { main: { steps: [{ id: 'nap', uses: 'wait', with: { for: '24h' } }] } },
  });
  expect(short.hash).toBe(long.hash);
});

describe('a fault of a duration says where it is and how to mend it', () => {
  const DURATION = 'must be a duration such as 30s, 5m, 24h or 7d';
  const RANGE = 'must be a duration from 1ms to 366d';
  test.each<[string, string, string]>([
    ['timeout: 30', 'timeout', DURATION],
    ['timeout: 30 seconds', 'timeout', DURATION],
    ['timeout: 1.5h', 'timeout', DURATION],
    ['timeout: 0s', 'timeout', RANGE],
    ['timeout: 400d', 'timeout', RANGE],
    ['retry: { max: soon }', 'retry.max', DURATION],
    [
      'retry: { deadline: 1h, deadlineMs: 1 }',
      'retry.deadline',
      'is given twice: remove "deadline" or "deadlineMs"',
    ],
    ['timeout: 1h\ntimeoutMs: 1', 'timeout', 'is given twice: remove "timeout" or "timeoutMs"'],
    ['timeuot: 1h', 'timeuot', 'is not a known key; did you mean "timeout"?'],
  ])('%s', (line, path, message) => {
    const faults = faultsOf(`id: flow\njobs: { main: { steps: [{ uses: set }] } }\n${line}\n`);
    expect(faults).toMatchObject([{ path, message, line: 3 }]);
  });

  test('an empty `with` beside `sleep`', () => {
    const faults = faultsOf('id: flow\njobs:\n  main:\n    steps:\n      - sleep: 1h\n        with:\n');
    expect(faults).toMatchObject([{ path: 'jobs.main.steps[0].with', line: 6 }]);
  });

  test.each<[string, string, string]>([
    ['sleep: soon', 'sleep', DURATION],
    ['sleep: 5000', 'sleep', DURATION],
    ['sleep: 100000000d', 'sleep', RANGE],
    ['uses: wait, with: {for: 400d}', 'with.for', RANGE],
    ['uses: approval, with: {timeout: 0s}', 'with.timeout', RANGE],
    [`sleep: "${cel('input.')}"`, 'sleep', expect.stringContaining('`input.`')],
    [`sleep: "${cel('steps.later.output')}"`, 'sleep', expect.stringContaining('"steps.later" is not there')],
    ['sleep: 1h, uses: set', 'sleep', 'says what the step does, so remove uses and with'],
    ['sleep: 1h, with: {a: 1}', 'sleep', 'says what the step does, so remove uses and with'],
    [
      'name: nothing',
      'uses',
      'is missing: name a command or a kind of step, or write run: or sleep: instead',
    ],
    ['uses: wait, with: {for: 1 day}', 'with.for', DURATION],
    ['uses: wait, with: {for: 1d, ms: 1}', 'with', 'give one of "for", "ms" and "until"'],
    ['uses: approval, with: {timeout: 90}', 'with.timeout', DURATION],
    ['uses: signal, with: {name: x, timeout: 1w}', 'with.timeout', DURATION],
    [
      'uses: approval, with: {timeout: 1d, timeoutMs: 1}',
      'with.timeout',
      expect.stringContaining('is given twice'),
    ],
  ])('in a step: %s', (step, path, message) => {
    const faults = faultsOf(`id: flow\njobs:\n  main:\n    steps:\n      - {${step}}\n`);
    expect(faults).toMatchObject([{ path: `jobs.main.steps[0].${path}`, message, line: 5 }]);
  });

  test('together with other faults of the shape', () => {
    const faults = faultsOf('id: flow\nversoin: 1\njobs: { main: { steps: [{ name: x }] } }\n');
    expect(faults.map(({ path }) => path)).toEqual(['versoin', 'jobs.main.steps[0].uses']);
  });
});

test('steps wait for a duration, from a text or from an expression', async () => {
  const it = await startWorkflow();
  const id = await it.start(
    {
      steps: [
        { id: 'nap', sleep: '90s' },
        { id: 'asked', sleep: cel('input.pause') },
        { id: 'approve', uses: 'approval', with: { timeout: '2h' } },
      ],
    },
    { input: { pause: '3m' } },
  );
  await it.until(id, 'waiting');
  expect((await it.step(id, 'main.nap')).wakeAt).toBe(it.clock.now() + seconds(90));
  for (const [ms, next, wakesIn] of [
    [seconds(90), 'asked', minutes(3)],
    [minutes(3), 'approve', hours(2)],
  ] as const) {
    it.clock.advance(ms);
    await it.services.engine.tick();
    await expect.poll(async () => (await it.step(id, `main.${next}`)).wakeAt).toBe(it.clock.now() + wakesIn);
  }
});

test('a step fails with an expression that yields no duration, and says so', async () => {
  const it = await startWorkflow();
  const id = await it.start({ steps: [{ sleep: cel('input.pause') }] }, { input: { pause: 'soon' } });
  await it.until(id, 'failed');
  expect((await it.step(id, 'main.step1')).error).toMatchObject({
    code: 'VALIDATION_ERROR',
    message: 'The length of the wait must be a duration such as 30s, 5m, 24h or 7d, not "soon".',
  });
});
