import type { z } from 'zod';
import * as kit from '../kit/data/schema-problems.ts';

export function problemText(issue: z.core.$ZodIssue): string {
  // Every argument arrives as a string, so the default text "not a string" would be misleading.
  if (issue.code === 'invalid_type' && issue.input !== undefined)
    return `must be ${kit.withArticle(issue.expected)}`;
  return kit.problemText(issue, issue.input);
}
