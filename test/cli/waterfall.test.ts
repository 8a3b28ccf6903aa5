import { Chalk } from 'chalk';
import { expect, test } from 'vitest';
import { waterfall } from '../../src/cli/commands/traces/waterfall.ts';
import type { Trace, TraceSpan } from '../../src/contracts/index.ts';

const PLAIN = new Chalk({ level: 0 });
const PART = { service: 'gateway', status: 'ok', result: 'ok', error: null, attributes: {} } as const;
const SPANS: TraceSpan[] = [
  {
    ...{ ...PART, id: 'd', parentId: null, kind: 'delivery', name: '@acme/shop paid', startedAt: 0 },
    ...{ durationMs: 1000, deliveryId: '01b8dac5-b5c2-7c27-a83c-4825204b1967', result: 'failed' },
    status: 'failed',
    error: { code: 'EXECUTION_ERROR', message: `No\n${'stock '.repeat(30)}` },
  },
  { ...PART, id: 'v', parentId: 'd', kind: 'verdict', name: 'verdict', startedAt: 0, durationMs: 0.4 },
  {
    ...{ ...PART, id: 'h', parentId: 'v', kind: 'handler', name: 'x'.repeat(200), startedAt: 500 },
    ...{ durationMs: null, status: 'open' as const },
  },
];
const TRACE: Trace = {
  ...{ traceId: 't'.repeat(32), startedAt: 0, durationMs: 1000, spans: SPANS },
  ...{ truncated: true, missing: ['logs'] },
};

test.each([60, 80, 120])('a waterfall has no line longer than %i columns', (width) => {
  const lines = waterfall(TRACE, PLAIN, width).split('\n');
  expect(lines.filter((line) => line.length > width)).toEqual([]);
});

test('a waterfall indents spans, draws their times, and says what is missing', () => {
  const text = waterfall(TRACE, PLAIN, 80);
  expect(text).toContain('delivery @acme/shop paid failed');
  expect(text).toContain('01b8dac5-b5c2-7c27-a83c-4825204b1967');
  expect(text).toMatch(/ {2}verdict verdict ok +█·{19} +0\.40ms/);
  expect(text).toMatch(/ {4}handler x+… ·{10}█{10} +open/);
  expect(text).toContain('EXECUTION_ERROR: ');
  expect(text).not.toMatch(/EXECUTION_ERROR: No$/m);
  expect(text).toContain('Spans are missing: the trace is larger than the limit.');
  expect(text).toContain('no answer from the source of logs');
});
