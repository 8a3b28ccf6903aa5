import { expect, test } from 'vitest';
import { requireAgents } from '../../../src/daemons/workflow/domain/runs/required-role.ts';

test('a refused agent reads how a person answers', () => {
  const refusal = (answer: Parameters<typeof requireAgents>[0]) => () =>
    requireAgents(answer, undefined, 'agent');
  expect(refusal('approval')).toThrow(/svc workflows approve.*set agents: true in the step/);
  expect(refusal({ signal: 'paid' })).toThrow(
    /"paid".*svc workflows signal.*set agents: true in these steps/,
  );
  expect(refusal('decision')).toThrow(/svc workflows decide\.$/);
  expect(() => requireAgents('approval', true, 'agent')).not.toThrow();
  expect(() => requireAgents('decision', undefined, undefined)).not.toThrow();
});
