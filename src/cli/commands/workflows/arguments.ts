import { z } from 'zod';
import { RunId } from '../../../contracts/index.ts';
import { readJson } from '../../json-flag.ts';

export const RunArg = RunId.describe('run id');

export const StepArg = z.string().min(1).max(256).describe('step: <job>.<step>');

export const InputFlag = z
  .string()
  .optional()
  .describe('input as JSON; "@<file>" reads a file, "-" reads stdin')
  .meta({ placeholder: 'json' });

/** Parses `--input`; default: an empty object. Throws UsageError for invalid JSON. */
export async function readInput(given: string | undefined, cwd: string): Promise<unknown> {
  return given === undefined ? {} : readJson('--input', given, cwd);
}
