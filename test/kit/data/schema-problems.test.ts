import { expect, test } from 'vitest';
import { z } from 'zod';
import { keysAt } from '../../../src/kit/data/schema-keys.ts';
import { formatPath, problemsOf } from '../../../src/kit/data/schema-problems.ts';

const Kind = z.discriminatedUnion('type', [
  z.object({ type: z.literal('secret'), header: z.string() }),
  z.object({ type: z.literal('hmac') }),
]);
const Schema = z.strictObject({
  text: z.string().min(2).max(4),
  count: z.number().int().optional(),
  list: z.array(z.string()).min(1).optional(),
  mode: z.enum(['fast', 'slow']).optional(),
  either: z.union([z.number(), z.strictObject({ deep: z.string() })]).optional(),
  kind: Kind.optional(),
  by: z.record(z.string().regex(/^[a-z]+$/), z.number()).optional(),
  own: z.string('needs a name').optional(),
});

const told = (value: unknown): string[] =>
  problemsOf(Schema.safeParse(value).error?.issues ?? [], value, (path) => keysAt(Schema, path)).map(
    ({ path, message }) => `${formatPath(path)} ${message}`,
  );

test.each([
  [{}, 'text is missing'],
  [{ text: 4 }, 'text must be a string, not a number'],
  [{ text: 'a' }, 'text must have at least 2 characters'],
  [{ text: 'abcde' }, 'text must have at most 4 characters'],
  [{ text: 'ab', count: 1.5 }, 'count must be a whole number, not a fraction'],
  [{ text: 'ab', list: [] }, 'list must not be empty'],
  [{ text: 'ab', list: [null] }, 'list[0] must be a string, not null'],
  [{ text: 'ab', mode: 'fats' }, 'mode must be one of fast, slow; did you mean fast?'],
  [{ text: 'ab', either: { deep: 4 } }, 'either deep: must be a string, not a number'],
  [{ text: 'ab', kind: { type: 'none' } }, 'kind.type must be one of secret, hmac'],
  [{ text: 'ab', kind: { type: 'secret' } }, 'kind.header is missing'],
  [{ text: 'ab', by: { A: 1 } }, 'by.A is not a valid name: must match /^[a-z]+$/'],
  [{ text: 'ab', own: 4 }, 'own needs a name'],
  [{ text: 'ab', lst: [] }, 'lst is not a known key; did you mean "list"?'],
])('%j: %s', (value, message) => {
  expect(told(value)).toEqual([message]);
});
