import type { z } from 'zod';
import * as kit from '../kit/data/schema-problems.ts';

export function problemText(issue: z.core.$ZodIssue): string {
  // The end of the default text (", not a string") is omitted, because every argument of a command line is a string.
  if (issue.code === 'invalid_type' && issue.input !== undefined)
    return `must be ${kit.withArticle(issue.expected)}`;
  return kit.problemText(issue, issue.input);
}
