import type { z } from 'zod';

/** Returns the path and the message of the first issue. `whole` is the path of the value itself. */
export function firstIssue({ issues }: z.ZodError, whole: string): string {
  const { path, message } = issues[0]!;
  return `${path.length === 0 ? whole : path.map(String).join('.')}: ${message}`;
}
