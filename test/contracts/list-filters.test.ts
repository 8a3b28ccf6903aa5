import { expect, test } from 'vitest';
import { z } from 'zod';
import type { Endpoint } from '../../src/contracts/index.ts';
import * as contracts from '../../src/contracts/index.ts';

const isEndpoint = (value: unknown): value is Endpoint =>
  typeof value === 'object' && value !== null && 'method' in value && 'path' in value && 'reply' in value;

/** Those whose answer has items, whatever else it has. */
const isList = ({ method, path, reply }: Endpoint): boolean =>
  method === 'GET' && path.startsWith('/api/') && reply instanceof z.ZodObject && 'items' in reply.shape;

const values: unknown[] = Object.values(contracts);
const lists = values.filter(isEndpoint).filter(isList);

test('there are lists', () => expect(lists.length).toBeGreaterThan(15));

test.each(lists.map((list) => [list.path, list] as const))('%s refuses an unknown filter', (_, { query }) => {
  // A required parameter that is missing is an issue of its own.
  expect(query?.safeParse({ nosuch: '1' }).error?.issues).toContainEqual(
    expect.objectContaining({ code: 'unrecognized_keys', keys: ['nosuch'] }),
  );
});
