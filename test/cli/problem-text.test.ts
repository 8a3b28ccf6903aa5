import { expect, test } from 'vitest';
import { z } from 'zod';
import { problemText } from '../../src/cli/problem-text.ts';

const told = (schema: z.ZodType, value: unknown): string | undefined =>
  schema.safeParse(value, { reportInput: true }).error?.issues.map(problemText)[0];

test('an invalid argument is reported with the valid form', () => {
  expect(told(z.enum(['failed', 'dead']), 'faild')).toBe('must be one of failed, dead; did you mean failed?');
  expect(told(z.uuid(), '1')).toMatch(/^must be an id such as /);
  expect(told(z.url(), 'here')).toMatch(/^must be an address such as /);
  expect(told(z.iso.datetime(), 'soon')).toMatch(/^must be a time such as /);
  expect(told(z.coerce.number().min(1).max(5), 'x')).toBe('must be a number');
  expect(told(z.coerce.number().int(), '1.5')).toBe('must be a whole number');
  expect(told(z.coerce.number().min(1), '0')).toBe('must be at least 1');
  expect(told(z.coerce.number().max(5), '9')).toBe('must be at most 5');
  expect(told(z.string().min(1), '')).toBe('must not be empty');
  expect(told(z.string().max(2), 'abc')).toBe('must have at most 2 characters');
  expect(told(z.string(), undefined)).toBe('is missing');
  expect(told(z.strictObject({}), { a: 1 })).not.toContain('Unrecognized');
  expect(told(z.string().min(1, 'needs a name'), '')).toBe('needs a name');
});
