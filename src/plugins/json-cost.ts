/**
 * Values that one frame may hold. What reading JSON costs goes by values and not by bytes: six megabytes of `[]` hold
 * us for 0.4 s, as many of text for 0.01 s.
 */
const MAX_VALUES = 500_000;
/** Shorter text cannot hold more, nor nest deep enough to matter. */
const CHEAP_CHARS = 1024;

/** What makes the text too costly to read, in words that complete "JSON …"; undefined when nothing does. */
export function costFault(text: string, maxDepth: number, maxValues = MAX_VALUES): string | undefined {
  if (text.length <= CHEAP_CHARS) return undefined;
  let depth = 0;
  let values = 1;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (inString) {
      if (char === 0x5c) i++;
      else if (char === 0x22) inString = false;
    } else if (char === 0x22) inString = true;
    else if (char === 0x2c) values++;
    else if (char === 0x7b || char === 0x5b) {
      values++;
      if (++depth > maxDepth) return `nested deeper than ${maxDepth} levels`;
    } else if (char === 0x7d || char === 0x5d) depth--;
  }
  return values > maxValues ? `of more than ${maxValues} values` : undefined;
}

/** The same for text of the runner's own making, which is looked through only when it could hold too many values. */
export function ownCostFault(text: string, maxDepth: number): string | undefined {
  return text.length > MAX_VALUES ? costFault(text, maxDepth) : undefined;
}
