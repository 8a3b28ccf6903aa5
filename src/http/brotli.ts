/** Returns whether a client accepts Brotli, by its `accept-encoding` header. */
export function acceptsBrotli(header: string | undefined): boolean {
  return header?.split(',').some((each) => /^\s*br\s*(?:;\s*q=(?!0(?:\.0*)?\s*$)|$)/.test(each)) ?? false;
}
