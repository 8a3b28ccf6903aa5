import { expect, test } from 'vitest';
import type { McpCall } from '../../../../src/daemons/gateway/mcp/platform-calls.ts';
import { RunAnswers } from '../../../../src/daemons/gateway/mcp/tasks/run-answers.ts';

test('a caller that repeats the session id of another caller does not take its questions', () => {
  const answers = new RunAnswers({} as never);
  const asked = { runId: 'r-1', key: 'agree' };
  const callOf = (hostId: string, namespaceId = 'acme') =>
    ({ caller: { hostId, namespaceId }, connection: 'forms-1' }) as McpCall;
  expect(answers.isNew(callOf('alice'), asked)).toBe(true);
  expect(answers.isNew(callOf('bob'), asked)).toBe(true);
  expect(answers.isNew(callOf('alice', 'other'), asked)).toBe(true);
  expect(answers.isNew(callOf('alice'), asked)).toBe(false);
});
