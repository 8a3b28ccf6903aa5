import type { z } from 'zod';
import * as kit from '../kit/data/schema-problems.ts';

/** Describes the fault of an argument and its valid values. */
export function problemText(issue: z.core.$ZodIssue): string {
  // All arguments are strings, so "not a string" would be misleading.
  if (issue.code === 'invalid_type' && issue.input !== undefined)
    return `must be ${kit.withArticle(issue.expected)}`;
  return kit.problemText(issue, issue.input);
}
