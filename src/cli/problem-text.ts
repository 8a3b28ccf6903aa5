import type { z } from 'zod';
import * as kit from '../kit/data/schema-problems.ts';

export function problemText(issue: z.core.$ZodIssue): string {
  // Omits the end of the default message (", not a string"), because every command line argument is a string.
  if (issue.code === 'invalid_type' && issue.input !== undefined)
    return `must be ${kit.withArticle(issue.expected)}`;
  return kit.problemText(issue, issue.input);
}
