import { z } from 'zod';
import { InputFlag, readInput } from './input-flag.ts';

/** Flags of the commands that start a run or a job. */
export const startFlags = {
  input: InputFlag,
  key: z.string().optional().describe('idempotency key: a repeated key has no second effect'),
  priority: z.coerce.number().int().min(-100).max(100).default(0).describe('-100 to 100; higher goes first'),
  at: z.iso.datetime({ offset: true }).optional().describe('earliest start (ISO 8601)'),
};

interface StartFlags {
  input?: string | undefined;
  key?: string | undefined;
  priority: number;
  at?: string | undefined;
}

/** Returns the request body fields set by the flags in `startFlags`. Throws UsageError for invalid JSON. */
export async function startFields({ input, key, priority, at }: StartFlags, cwd: string) {
  return {
    input: await readInput(input, cwd),
    priority,
    ...(key === undefined ? {} : { idempotencyKey: key }),
    ...(at === undefined ? {} : { runAt: Date.parse(at) }),
  };
}
