import { z } from 'zod';

/** What a handler may say went wrong. `code` is one the plugin declares, or a platform code. */
export const CommandError = z.object({
  message: z.string(),
  code: z.string().optional(),
  details: z.record(z.string(), z.unknown()).optional(),
});

/** What every handler call ends in; `exitCode` 0 means success. @spec Command result */
export const CommandResult = z.object({
  exitCode: z.number().int(),
  result: z.unknown().optional(),
  meta: z.record(z.string(), z.unknown()).optional(),
  error: CommandError.optional(),
});
export type CommandResult<T = unknown> = Omit<z.infer<typeof CommandResult>, 'result'> & { result?: T };

/** The command line's JSON envelope. @spec Errors: Shapes */
export interface Envelope {
  ok: boolean;
  result?: unknown;
  error?: { code: string; message: string; details: Record<string, unknown> };
  meta?: Record<string, unknown>;
}
