import { expect, test } from 'vitest';
import { z } from 'zod';
import { firstIssue, firstIssueIn } from '../../../src/kit/data/first-issue.ts';

const Order = z.object(
  { lines: z.array(z.object({ count: z.number('must be a number') })) },
  'must be an object',
);

test.each([
  [
    'a nested value',
    { lines: [{ count: 'one' }] },
    'lines.0.count: must be a number',
    'order.lines.0.count: must be a number',
  ],
  ['the value itself', 7, 'The order: must be an object', 'order: must be an object'],
])('the first issue of %s has its path', (_, value, alone, within) => {
  const error = Order.safeParse(value).error!;
  expect([firstIssue(error, 'The order'), firstIssueIn(error, 'order')]).toEqual([alone, within]);
});
