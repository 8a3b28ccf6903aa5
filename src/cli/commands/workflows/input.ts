import { z } from 'zod';
import { readJson } from '../../json-flag.ts';

export const InputFlag = z
  .string()
  .optional()
  .describe('input as JSON; "@<file>" reads a file, "-" reads stdin')
  .meta({ placeholder: 'json' });

/** Parses `--input`; default: an empty object. Throws UsageError for invalid JSON. */
export async function readInput(given: string | undefined, cwd: string): Promise<never> {
  return (given === undefined ? {} : await readJson('--input', given, cwd)) as never;
}
