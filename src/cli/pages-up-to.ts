import type { ListPage, PageFlags } from './list-page.ts';

/**
 * Reads pages of a list until it ends or has `limit` items. `perPage` is the maximum of the endpoint. Without a limit,
 * reads the whole list.
 */
export async function pagesUpTo<Item>(
  { limit = Number.POSITIVE_INFINITY, cursor }: PageFlags,
  read: (part: { limit: number; cursor?: string }) => Promise<ListPage<Item>>,
  perPage: number,
): Promise<ListPage<Item>> {
  const items: Item[] = [];
  let nextCursor: string | null = cursor ?? null;
  do {
    const part = { limit: Math.min(perPage, limit - items.length) };
    const page: ListPage<Item> = await read({ ...part, ...(nextCursor ? { cursor: nextCursor } : {}) });
    items.push(...page.items);
    nextCursor = page.nextCursor;
  } while (nextCursor !== null && items.length < limit);
  return { items, nextCursor };
}
