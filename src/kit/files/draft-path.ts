/**
 * Path of a temporary file to be renamed onto `file`. Unguessable, so that another user cannot create it first;
 * open it with `wx` anyway.
 */
export function draftPathOf(file: string): string {
  const { randomUUID } = process.getBuiltinModule('node:crypto');
  return `${file}.${randomUUID()}.new`;
}
