import { z } from 'zod';
import { UsageError } from './parse-args.ts';
import type { Style } from './style.ts';

/** `-n` and `--cursor`, which every list takes. */
export const pageFlags = {
  limit: z.coerce.number().int().min(1).max(10_000).optional().describe('how many; default: all'),
  cursor: z.string().min(1).optional().describe('where the page before ended'),
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

/** A page of a list that was fetched as a whole; a cursor is the id of the last item before. Throws UsageError. */
export function pageOf<Item>(
  all: readonly Item[],
  { limit = all.length, cursor }: PageFlags,
  idOf: (item: Item) => string,
): ListPage<Item> {
  const before = cursor === undefined ? -1 : all.findIndex((item) => idOf(item) === cursor);
  if (cursor !== undefined && before === -1)
    throw new UsageError(`--cursor: the list has no item ${JSON.stringify(cursor)} any more.`, {
      hint: 'Begin again without --cursor.',
    });
  const items = all.slice(before + 1, before + 1 + limit);
  const last = items.at(-1);
  const isMore = last !== undefined && before + 1 + items.length < all.length;
  return { items, nextCursor: isMore ? idOf(last) : null };
}

/** The line below a page that is not the last. */
export function moreLine(nextCursor: string | null, style: Style): string {
  return nextCursor === null ? '' : `\n${style.dim(`more: --cursor ${nextCursor}`)}`;
}
