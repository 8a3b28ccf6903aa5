import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { messageOf } from '../../../kit/errors.ts';
import { UsageError } from '../../parse-args.ts';

export const InputFlag = z
  .string()
  .optional()
  .describe('the input as JSON; "@<file>" reads a file, "-" reads stdin')
  .meta({ placeholder: 'json' });

/** Throws UsageError for what is no JSON. */
export async function readInput(given: string | undefined, cwd: string): Promise<never> {
  if (given === undefined) return {} as never;
  const source = given === '-' ? 'stdin' : given.startsWith('@') ? given.slice(1) : '--input';
  try {
    const json =
      given === '-'
        ? await text(process.stdin)
        : given.startsWith('@')
          ? await readFile(resolve(cwd, source), 'utf8')
          : given;
    return JSON.parse(json) as never;
  } catch (error) {
    throw new UsageError(`--input: ${source} is not JSON that can be read: ${messageOf(error)}`, {
      hint: `--input '{"name": "value"}'`,
    });
  }
}
