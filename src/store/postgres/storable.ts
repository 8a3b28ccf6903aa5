/** Replaces U+0000, which PostgreSQL cannot store. */
export function storable(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text;
}
