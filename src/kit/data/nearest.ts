/** Maximum length of a word to correct. Longer texts are data rather than typing errors. */
const MAX_WORD_CHARS = 64;
const MAX_CANDIDATES = 1000;

/**
 * Returns the candidate closest to a mistyped word. Returns undefined if no candidate is close, or if the word or the
 * list is too long.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > MAX_WORD_CHARS) return undefined;
  const tolerated = Math.max(1, Math.floor(word.length / 3));
  let best: { candidate: string; distance: number } | undefined;
  let count = 0;
  for (const candidate of candidates) {
    if (++count > MAX_CANDIDATES) return undefined;
    // The difference in length is a lower bound of the edit distance.
    if (Math.abs(candidate.length - word.length) > tolerated) continue;
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (!best || distance < best.distance) best = { candidate, distance };
  }
  return best && best.distance <= tolerated ? best.candidate : undefined;
}

/**
 * Returns the optimal string alignment distance. Counts insertions, deletions, replacements and swaps of adjacent
 * characters.
 */
function editDistance(left: string, right: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i++) {
    const row = [i];
    for (let j = 1; j <= right.length; j++) {
      const same = left[i - 1] === right[j - 1];
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1));
      const swapped = i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
      if (swapped) row[j] = Math.min(row[j]!, beforeLast[j - 2]! + 1);
    }
    beforeLast = last;
    last = row;
  }
  return last[right.length]!;
}
