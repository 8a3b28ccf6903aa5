import type { z } from 'zod';
import * as kit from '../kit/schema-problems.ts';

/** What is wrong with an argument, in words that say what would be right. */
export function problemText(issue: z.core.$ZodIssue): string {
  // Every argument is text: that a text is no number is said, that it is a text is not.
  if (issue.code === 'invalid_type' && issue.input !== undefined)
    return `must be ${kit.withArticle(issue.expected)}`;
  return kit.problemText(issue, issue.input);
}
