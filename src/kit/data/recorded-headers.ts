/** Value that records contain instead of the value of a masked header. */
export const MASKED_VALUE = '[masked]';

/** First characters of recorded headers: a JSON array of name-value pairs that is not empty. */
export const PAIRS_START = '[["';

/**
 * Returns the texts of recorded headers that a search compares: `name: value`, or only the name of a masked header.
 * Pseudo-headers are left out, because one of them contains sealed headers.
 */
export function searchedHeaders(recorded: string | null): string[] {
  if (!recorded?.startsWith(PAIRS_START)) return [];
  return (JSON.parse(recorded) as Array<[string, string]>)
    .filter(([name]) => !name.startsWith(':'))
    .map(([name, value]) => (value === MASKED_VALUE ? name : `${name}: ${value}`));
}

/**
 * Returns a text that the JSON of recorded headers contains if one of their searched texts contains the search text.
 * Names contain no colon, so a part between two colons is in a name or in a value.
 */
export function headerNeedle(search: string): string {
  const parts = search.split(':').map((part) => part.trim());
  const longest = parts.reduce((known, part) => (part.length > known.length ? part : known));
  return JSON.stringify(longest).slice(1, -1);
}
