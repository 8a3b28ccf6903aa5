import { z } from 'zod';
import { readJson } from './json-flag.ts';

export const InputFlag = z
  .string()
  .optional()
  .describe('input as JSON; "@<file>" reads a file, "-" reads stdin')
  .meta({ placeholder: 'json' });

/** Parses `--input`. Without the flag, returns an empty object. Throws UsageError for invalid JSON. */
export async function readInput(given: string | undefined, cwd: string): Promise<unknown> {
  return given === undefined ? {} : readJson('--input', given, cwd);
}
