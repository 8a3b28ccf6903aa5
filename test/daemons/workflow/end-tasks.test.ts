import { describe, expect, test } from 'vitest';
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
