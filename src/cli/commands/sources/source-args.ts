import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { DestinationName, SourceName } from '../../../contracts/index.ts';
import { readJson } from '../../json-flag.ts';
import { UsageError } from '../../parse-args.ts';

export const nameArg = SourceName.describe('name of the source');
export const destinationArg = DestinationName.describe('name of the destination');
export const destinationFlag = DestinationName.optional().describe('only this destination');

export const secretFlag = z.boolean().default(false).describe('read the secret from stdin');

/** Reads the secret from stdin, without the newline that shells append. Throws UsageError for a terminal. */
export async function readSecret(
  isWanted: boolean,
  command = 'svc sources rotate <name> --secret-stdin',
): Promise<{ secret?: string }> {
  if (!isWanted) return {};
  if (process.stdin.isTTY)
    throw new UsageError('--secret-stdin requires a pipe on stdin.', {
      hint: `pbpaste | ${command}`,
    });
  const secret = (await text(process.stdin)).replace(/\r?\n$/, '');
  if (secret === '') throw new UsageError('--secret-stdin: stdin was empty.');
  return { secret };
}

export const authFlag = z
  .string()
  .optional()
  .describe('authentication as JSON, instead of a provider; "@<file>" reads a file')
  .meta({ placeholder: 'json' });

export async function readAuth(given: string | undefined, cwd: string): Promise<{ auth?: never }> {
  return given === undefined ? {} : { auth: (await readJson('--auth', given, cwd)) as never };
}

/** Flags of the target and of the settings of a destination. */
export const destinationFlags = {
  forward: z
    .string()
    .optional()
    .describe('URL that receives the original request')
    .meta({ placeholder: 'url' }),
  workflow: z.string().optional().describe('workflow to run').meta({ placeholder: 'id' }),
  queue: z
    .string()
    .optional()
    .describe('queue that keeps deliveries for programs')
    .meta({ placeholder: 'name' }),
  command: z
    .string()
    .optional()
    .describe('command of a plugin to run')
    .meta({ placeholder: 'plugin/command' }),
  filter: z
    .string()
    .optional()
    .describe('CEL over headers, body, source and event')
    .meta({ placeholder: 'cel' }),
  transform: z.string().optional().describe('CEL whose value replaces the body').meta({ placeholder: 'cel' }),
  maxAttempts: z.coerce.number().int().min(2).max(100).optional().describe('attempts in all'),
  concurrency: z.coerce.number().int().min(1).max(1000).optional().describe('attempts in flight'),
  orderBy: z.string().optional().describe('dot path into the body; equal values keep order'),
};
type DestinationFlags = z.infer<z.ZodObject<typeof destinationFlags>>;

/** Returns the fields of the request body that the flags set. */
export function destinationBody(flags: DestinationFlags) {
  const { maxAttempts, forward, workflow, queue, command, filter, transform, concurrency, orderBy } = flags;
  const given = { forward, workflow, queue, command, filter, transform, concurrency, orderBy };
  const set = Object.entries(given).filter(([, value]) => value !== undefined);
  const backoff = forward === undefined ? { factor: 3 } : { initialMs: 5000, factor: 3 };
  return {
    ...(Object.fromEntries(set) as { [key in keyof typeof given]?: NonNullable<(typeof given)[key]> }),
    ...(maxAttempts === undefined ? {} : { retry: { maxAttempts, backoff } }),
  };
}
