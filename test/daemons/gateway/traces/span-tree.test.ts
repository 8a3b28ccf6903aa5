import { expect, test } from 'vitest';
import type { TraceSpan } from '../../../../src/contracts/index.ts';
import { orderSpans } from '../../../../src/daemons/gateway/domain/traces/span-tree.ts';

function span(id: string, parentId: string | null, more: Partial<TraceSpan> = {}): TraceSpan {
  return {
    ...{ id, parentId, kind: 'request', name: id, service: 'workflow', startedAt: 0, durationMs: 1 },
    ...{ status: 'ok', result: '200', error: null, attributes: {} },
    ...more,
  } as TraceSpan;
}

const shape = (spans: readonly TraceSpan[]) => orderSpans(spans).map(({ id, parentId }) => [id, parentId]);

test('parents come before their children, and siblings in the order of their starts', () => {
  const spans = [
    span('late', 'root', { startedAt: 9 }),
    span('early', 'root', { startedAt: 1 }),
    span('below', 'late', { startedAt: 10 }),
    span('root', null),
  ];
  expect(shape(spans)).toEqual([
    ['root', null],
    ['early', 'root'],
    ['late', 'root'],
    ['below', 'late'],
  ]);
});

test('a span with an unknown parent is a root, and a second span with the same id is left out', () => {
  expect(shape([span('a', 'unknown'), span('a', null), span('b', 'b')])).toEqual([
    ['a', null],
    ['b', null],
  ]);
});

test('spans that name each other as parents are all shown', () => {
  expect(shape([span('a', 'b'), span('b', 'a'), span('c', 'b')])).toEqual([
    ['a', null],
    ['b', 'a'],
    ['c', 'b'],
  ]);
});

test('a handler belongs to the attempt of its delivery in which it ran', () => {
  const delivery = { requestId: 'r', service: 'gateway' };
  const spans = [
    span('d', null, { ...delivery, kind: 'delivery' }),
    span('first', 'd', { ...delivery, kind: 'attempt' }),
    span('second', 'd', { ...delivery, kind: 'attempt', startedAt: 100 }),
    span('run', 'd', { kind: 'run', startedAt: 150 }),
    span('h1', null, { ...delivery, kind: 'handler', startedAt: 1 }),
    span('h2', 'unknown', { ...delivery, kind: 'handler', startedAt: 99 }),
  ];
  expect(shape(spans)).toEqual([
    ['d', null],
    ['first', 'd'],
    ['h1', 'first'],
    ['second', 'd'],
    ['h2', 'second'],
    ['run', 'second'],
  ]);
});
