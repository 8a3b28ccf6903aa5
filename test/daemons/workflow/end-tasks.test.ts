import { describe, expect, test } from 'vitest';
import { PlatformError } from '../../../src/kit/errors/errors.ts';
import { days } from '../../../src/kit/time/duration.ts';
import { endTasks } from './support/end-tasks.ts';
import { cel } from './support/workflow.ts';

describe('a message of an ended run', () => {
  const message = { type: 'order.failed', application: cel('input.customer') };
  const sentFor = async (customer: unknown) => {
    const { handlers, sent, events, tasks } = endTasks({
      failure: { message },
      run: { input: JSON.stringify({ customer }) },
    });
    handlers.start();
    await expect.poll(() => tasks.size).toBe(0);
    return { sent: sent.map(({ application }) => application), events };
  };

  test('goes to the application that its expression returns, numbers as text', async () => {
    expect((await sentFor('c-1')).sent).toEqual(['c-1']);
    expect((await sentFor(7)).sent).toEqual(['7']);
  });

  test.for([
    [null, 'null'],
    [{}, 'an object'],
    ['', 'an empty string'],
    [true, 'a boolean'],
  ] as const)(
    'is not sent to other recipients if the expression returns %j',
    async ([customer, returned]) => {
      const { sent, events } = await sentFor(customer);
      expect(sent).toEqual([]);
      const data = { code: 'VALIDATION_ERROR', message: expect.stringContaining(returned) };
      expect(events).toMatchObject([{ type: 'run.handler_failed', data }]);
    },
  );
});

describe('a handler that fails', () => {
  const unavailable = async () => {
    throw new PlatformError('SERVICE_UNAVAILABLE', 'The gateway does not answer.');
  };
  const levels = (logs: ReturnType<typeof endTasks>['logs']) =>
    logs.lines.filter(({ event }) => event === 'run.handler_failed').map(({ level }) => level);

  test('is logged at the first retry and when the retries end', async () => {
    const failure = { message: { type: 'order.failed' } };
    const { handlers, clock, logs, sent, events } = endTasks({ failure, send: unavailable });
    handlers.start();
    await expect.poll(() => levels(logs)).toEqual(['warn']);
    clock.advance(1001);
    await expect.poll(() => sent.length).toBe(2);
    clock.advance(days(7));
    await expect.poll(() => events).toMatchObject([{ data: { code: 'SERVICE_UNAVAILABLE' } }]);
    expect(levels(logs)).toEqual(['warn', 'error']);
  });

  test('is logged when retention has deleted the run', async () => {
    const { handlers, logs, tasks, deps } = endTasks({ failure: { workflow: 'notify' } });
    deps.runs.find = async () => undefined;
    handlers.start();
    await expect.poll(() => tasks.size).toBe(0);
    expect(logs.lines).toMatchObject([{ level: 'error', reasonCode: 'WORKFLOW_RUN_NOT_FOUND' }]);
  });
});
