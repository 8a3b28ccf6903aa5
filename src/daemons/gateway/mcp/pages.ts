import { invalidParams } from './protocol-error.ts';

const PAGE_SIZE = 100;

/** Returns the items after the cursor, which is the key of the last item of the previous page. */
export function pageOf<Item>(
  all: readonly Item[],
  cursor: string | undefined,
  keyOf: (item: Item) => string,
): { items: Item[]; nextCursor: { nextCursor?: string } } {
  const start = cursor === undefined ? 0 : all.findIndex((item) => keyOf(item) === decodedCursor(cursor)) + 1;
  if (cursor !== undefined && start === 0)
    throw invalidParams('The cursor is not valid. List from the start again.');
  const items = all.slice(start, start + PAGE_SIZE);
  const isLast = start + PAGE_SIZE >= all.length;
  return { items, nextCursor: isLast ? {} : { nextCursor: encodedCursor(keyOf(items.at(-1)!)) } };
}

const encodedCursor = (key: string): string => Buffer.from(key).toString('base64url');
const decodedCursor = (cursor: string): string => Buffer.from(cursor, 'base64url').toString();
