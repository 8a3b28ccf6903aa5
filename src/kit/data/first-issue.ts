import type { z } from 'zod';

/** Returns the path and the message of the first issue. `whole` is the path of the value itself. */
export function firstIssue({ issues }: z.ZodError, whole: string): string {
  const { path, message } = issues[0]!;
  return `${path.map(String).join('.') || whole}: ${message}`;
}

/** Does the same as `firstIssue`, but the path starts with `place`, the path of the value itself. */
export function firstIssueIn({ issues }: z.ZodError, place: string): string {
  const { path, message } = issues[0]!;
  return `${[place, ...path.map(String)].join('.')}: ${message}`;
}
