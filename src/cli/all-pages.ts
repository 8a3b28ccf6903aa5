interface Page<Item> {
  items: Item[];
  nextCursor: string | null;
}

export async function allPages<Item>(
  fetchPage: (cursor: string | undefined) => Promise<Page<Item>>,
): Promise<Item[]> {
  const items: Item[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await fetchPage(cursor);
    items.push(...page.items);
    if (page.nextCursor === null) return items;
    cursor = page.nextCursor;
  }
}

/** Returns the query parameters for one page of a list. `namespaceId` restricts the list to one namespace. */
export function pageQueryOf<Namespace>(namespaceId: Namespace | undefined, cursor: string | undefined) {
  return {
    limit: 500,
    ...(namespaceId === undefined ? {} : { namespaceId }),
    ...(cursor === undefined ? {} : { cursor }),
  };
}
