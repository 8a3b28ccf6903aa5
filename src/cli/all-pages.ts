interface Page<Item> {
  items: Item[];
  nextCursor: string | null;
}

/** Every item of a list that the gateway gives out page by page. */
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

/** The query of one page, narrowed to a namespace where one was given with `--namespace`. */
export function pageQueryOf<Namespace>(namespaceId: Namespace | undefined, cursor: string | undefined) {
  return {
    limit: 500,
    ...(namespaceId === undefined ? {} : { namespaceId }),
    ...(cursor === undefined ? {} : { cursor }),
  };
}
