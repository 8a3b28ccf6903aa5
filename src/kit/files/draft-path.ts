/**
 * Returns the path of a temporary file that will be renamed to `file`. The name is random, so that another user cannot
 * create the file first. Callers must open the file with the flag `wx`.
 */
export function draftPathOf(file: string): string {
  const { randomUUID } = process.getBuiltinModule('node:crypto');
  return `${file}.${randomUUID()}.new`;
}
