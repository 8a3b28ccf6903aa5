import type { z } from 'zod';
import { nearest } from '../kit/nearest.ts';

/** What is wrong with an argument, in words that say what would be right. */
export function problemText(issue: z.core.$ZodIssue): string {
  // A schema that has words of its own knows better.
  if (!/^(?:Invalid|Too) /.test(issue.message)) return issue.message;
  if (issue.code === 'invalid_value') {
    const choices = issue.values.map(String);
    const meant = typeof issue.input === 'string' ? nearest(issue.input, choices) : undefined;
    return `must be one of ${choices.join(', ')}${meant ? `; did you mean ${meant}?` : ''}`;
  }
  if (issue.code === 'invalid_format') return FORMATS[issue.format] ?? issue.message;
  if (issue.code === 'invalid_type' && issue.expected === 'number') return 'must be a number';
  if (issue.code === 'invalid_type' && issue.expected === 'int') return 'must be a whole number';
  if (issue.code === 'too_small' && issue.origin === 'string') return 'must not be empty';
  if (issue.code === 'too_small' && issue.origin === 'number') return `must be at least ${issue.minimum}`;
  if (issue.code === 'too_big' && issue.origin === 'number') return `must be at most ${issue.maximum}`;
  if (issue.code === 'too_big' && issue.origin === 'string')
    return `must have at most ${issue.maximum} characters`;
  return issue.message;
}

const FORMATS: Readonly<Record<string, string>> = {
  uuid: 'must be an id such as 01b8dac5-b5c2-7c27-a83c-4825204b1967',
  url: 'must be an address such as https://svc.example.com',
  datetime: 'must be a time such as 2030-01-31T12:00:00Z',
};
