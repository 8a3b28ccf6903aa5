import { z } from 'zod';
import { UsageError } from './parse-args.ts';
import type { Style } from './style.ts';

/** Pagination flags common to all lists. */
export const pageFlags = {
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(10_000)
    .optional()
    .describe('maximum number of items; default: all'),
  cursor: z.string().min(1).optional().describe('nextCursor of the previous page'),
};
export const pageShort = { limit: 'n' } as const;

export interface PageFlags {
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface ListPage<Item> {
  items: Item[];
  nextCursor: string | null;
}

/**
 * Returns one page of a complete list. The cursor is the id of the previous page's last item. Throws UsageError if the
 * list does not contain that id.
 */
export function pageOf<Item>(
  all: readonly Item[],
  { limit = all.length, cursor }: PageFlags,
  idOf: (item: Item) => string,
): ListPage<Item> {
  const before = cursor === undefined ? -1 : all.findIndex((item) => idOf(item) === cursor);
  if (cursor !== undefined && before === -1)
    throw new UsageError(`--cursor: the list no longer contains ${JSON.stringify(cursor)}.`, {
      hint: 'Start again without --cursor.',
    });
  const items = all.slice(before + 1, before + 1 + limit);
  const last = items.at(-1);
  const isMore = last !== undefined && before + 1 + items.length < all.length;
  return { items, nextCursor: isMore ? idOf(last) : null };
}

/** Returns the line with the next cursor, which is printed below every page except the last page. */
export function moreLine(nextCursor: string | null, style: Style): string {
  return nextCursor === null ? '' : `\n${style.dim(`more: --cursor ${nextCursor}`)}`;
}
