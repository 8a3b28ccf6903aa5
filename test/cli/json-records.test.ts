import { expect, test } from 'vitest';
import { completeRecords } from '../../src/cli/json-records.ts';
import { renderResult } from '../../src/cli/output.ts';
import { createStyle } from '../../src/cli/style.ts';

const NOON = Date.UTC(2026, 10, 22, 12);
const ISO = '2026-11-22T12:00:00.000Z';

test('a record has its id as `id` and each time as ISO text, beside its original fields', () => {
  const delivery = { webhookId: 'w1', pluginId: 'p', receivedAt: NOON, nextAttemptAt: null };
  expect(completeRecords({ items: [delivery], nextCursor: null }, { idField: 'webhookId' })).toEqual({
    items: [{ ...delivery, id: 'w1', receivedAtIso: ISO, nextAttemptAtIso: null }],
    nextCursor: null,
  });
  expect(completeRecords({ time: NOON, lastExit: { at: NOON } }, {})).toEqual({
    time: NOON,
    timeIso: ISO,
    lastExit: { at: NOON, atIso: ISO },
  });
  expect(completeRecords({ installedAt: ISO }, {})).toEqual({ installedAt: ISO, installedAtIso: ISO });
});

test('existing ids, text that is not a time, and user data are unchanged', () => {
  expect(completeRecords({ id: 'own', webhookId: 'w1' }, { idField: 'webhookId' })).toEqual({
    id: 'own',
    webhookId: 'w1',
  });
  const untouched = {
    stopAt: 'the end',
    format: NOON,
    createdAt: Number.NaN,
    input: { createdAt: NOON },
    output: [{ webhookId: 'w2', at: NOON }],
  };
  expect(completeRecords(untouched, { idField: 'webhookId' })).toEqual(untouched);
  expect(completeRecords({ createdAt: NOON }, { verbatim: true })).toEqual({ createdAt: NOON });
});

test('an envelope has complete records, also for a failure', () => {
  const command = { name: 'x', summary: '', example: '', idField: 'jti', args: {}, run: () => {} } as never;
  const style = createStyle({}, { NO_COLOR: '1' });
  const print = (exitCode: number): { result: unknown } =>
    JSON.parse(renderResult(command, { exitCode, result: { jti: 'j', expiresAt: NOON } }, true, style)!);
  const result = { jti: 'j', id: 'j', expiresAt: NOON, expiresAtIso: ISO };
  expect([print(0).result, print(1).result]).toEqual([result, result]);
});
