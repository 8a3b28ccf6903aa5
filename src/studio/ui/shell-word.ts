/** Returns a time of a filter in the form that flags of commands accept. Filters also accept epoch milliseconds. */
export function timeFlag(text: string): string {
  const time = new Date(/^\d+$/.test(text) ? Number(text) : text);
  return Number.isNaN(time.getTime()) ? text : time.toISOString();
}

/** Returns the text as one word of a shell command. */
export function shellWord(text: string): string {
  return /^[\w.:/@=+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
