/**
 * A name beside a file for the draft that `rename` puts in its place. Another user cannot guess it, so cannot take it first;
 * open it with `wx` all the same.
 */
export function draftPathOf(file: string): string {
  const { randomUUID } = process.getBuiltinModule('node:crypto');
  return `${file}.${randomUUID()}.new`;
}
