import { z } from 'zod';

/** Failure of a handler. `code` is declared by the plugin or is a platform code. */
export const CommandError = z.object({
  message: z.string(),
  code: z.string().optional(),
  details: z.record(z.string(), z.unknown()).optional(),
});

/** Result of every handler call. `exitCode` 0 means success. @spec Command result */
export const CommandResult = z.object({
  exitCode: z.number().int(),
  result: z.unknown().optional(),
  meta: z.record(z.string(), z.unknown()).optional(),
  error: CommandError.optional(),
});
export type CommandResult<T = unknown> = Omit<z.infer<typeof CommandResult>, 'result'> & { result?: T };

/** JSON envelope printed by the CLI. @spec Errors: Shapes */
export interface Envelope {
  ok: boolean;
  result?: unknown;
  error?: { code: string; message: string; details: Record<string, unknown> };
  meta?: Record<string, unknown>;
}
