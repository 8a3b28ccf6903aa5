/** Returns labels as the filter of the list takes them: `key:value`. Services of an earlier version send no labels. */
export function labelTexts(labels: Record<string, string> = {}): string[] {
  return Object.entries(labels).map(([key, value]) => `${key}:${value}`);
}
