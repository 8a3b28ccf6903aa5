import { z } from 'zod';
import { readJson } from '../../json-flag.ts';

export const InputFlag = z
  .string()
  .optional()
  .describe('the input as JSON; "@<file>" reads a file, "-" reads stdin')
  .meta({ placeholder: 'json' });

/** What `--input` holds; without it an empty object. Throws UsageError for what is no JSON. */
export async function readInput(given: string | undefined, cwd: string): Promise<never> {
  return (given === undefined ? {} : await readJson('--input', given, cwd)) as never;
}
