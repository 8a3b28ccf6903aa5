import { Chalk } from 'chalk';
import { expect, test } from 'vitest';
import { type TimelineParts, timelineChart } from '../../src/cli/commands/workflows/timeline-chart.ts';
import type { RunId, RunStep } from '../../src/contracts/index.ts';

const PLAIN = new Chalk({ level: 0 });
const FAILURE = { code: 'UPSTREAM_ERROR', message: `No\n${'bank '.repeat(40)}`, details: {} };
const STEP: RunStep = {
  ...{ id: 'main.charge', jobId: 'main', name: 'charge', uses: 'http', status: 'succeeded', attempts: 2 },
  ...{ output: null, error: null, waitingFor: null, wakeAt: null, readyAt: 0, queuedAt: 4000 },
  ...{ startedAt: 1000, attemptStartedAt: 4000, waitingAt: null, finishedAt: 5000 },
  history: [
    {
      ...{ attempt: 1, status: 'failed', errorClass: 'server', error: FAILURE },
      ...{ queuedAt: 0, startedAt: 1000, waitingAt: null, finishedAt: 3000 },
    },
    {
      ...{ attempt: 2, status: 'succeeded', errorClass: null, error: null },
      ...{ queuedAt: 4000, startedAt: 4000, waitingAt: null, finishedAt: 5000 },
    },
  ],
};
const HOLD: RunStep = {
  ...STEP,
  ...{ id: 'main.hold', uses: 'approval', status: 'waiting', attempts: 1, finishedAt: null, history: [] },
  ...{ queuedAt: 5000, attemptStartedAt: 5000, waitingAt: 5000 },
};
const SKIPPED: RunStep = { ...STEP, id: 'main.no', status: 'skipped', history: [] };
const PARTS: TimelineParts = {
  run: {
    id: 'run_1' as RunId,
    workflowId: 'order',
    status: 'waiting',
    createdAt: 0,
    finishedAt: null,
    error: null,
  },
  steps: [HOLD, STEP, SKIPPED],
  now: 30_000,
};

test.each([60, 80, 140])('a timeline has no line longer than %i columns', (width) => {
  const lines = timelineChart(PARTS, PLAIN, width).split('\n');
  expect(lines.filter((line) => line.length > width)).toEqual([]);
});

test('a timeline draws each attempt in the order of their begin, with its phases', () => {
  const text = timelineChart(PARTS, PLAIN, 80);
  expect(text).toMatch(/main\.charge failed +·██ +3\.0s\n {2}UPSTREAM_ERROR: No bank/);
  expect(text).toMatch(/main\.charge #2 +█ +1\.0s/);
  expect(text).toMatch(/main\.hold waiting +░{25} +25\.0s/);
  expect(text.indexOf('main.charge #2')).toBeLessThan(text.indexOf('main.hold'));
  expect(text).toContain('1 step was skipped.');
});

test('a timeline draws a wait that was cancelled', () => {
  const cancelled: RunStep = { ...HOLD, status: 'cancelled', finishedAt: 20_000 };
  const text = timelineChart({ ...PARTS, steps: [STEP, cancelled] }, PLAIN, 80);
  expect(text).toMatch(/main\.hold cancelled +░{15} +15\.0s/);
});

test('a run without a begun step has a timeline', () => {
  expect(timelineChart({ ...PARTS, steps: [] }, PLAIN, 80)).toContain('No step has begun.');
});
