import type { z } from 'zod';
import type { CommandResult, Envelope } from '../contracts/index.ts';
import type { CommandContext } from './context.ts';
import type { Style } from './style.ts';

/**
 * A command as data plus a function. Keys of `args` that must be there are positional, in their order; the others
 * are flags (`instanceId` is `--instance-id`), unless `positionals` names them. `run` returns what happened and
 * writes nothing to stdout itself, streams through `ui.line` excepted.
 */
export interface Command<Args extends z.ZodObject = z.ZodObject, Result = unknown> {
  /** As typed: `webhooks provision`. */
  readonly name: string;
  readonly summary: string;
  readonly args: Args;
  readonly positionals?: ReadonlyArray<keyof z.output<Args> & string>;
  /** One-letter forms of flags. */
  readonly short?: { readonly [key in keyof z.output<Args>]?: string };
  readonly example: string;
  /** When it prints its output as it comes (one JSON document a line with `--json`); never, unless told. */
  readonly streams?: Streams;
  /** The field that identifies its records; `--json` prints its value as `id` too. */
  readonly idField?: string;
  /** The result is a document of others, which `--json` prints unchanged. */
  readonly verbatim?: true;
  run(args: z.output<Args>, context: CommandContext): Promise<CommandResult<Result>>;
  /**
   * For commands whose arguments are known only when it is called: the command meant, and the arguments left
   * for it. Undefined: this one.
   */
  expand?(argv: readonly string[], context: CommandContext): Promise<Expanded | undefined>;
  /** The result as a person reads it; without it, a general view of the data. */
  text?(result: Result, style: Style): string;
}

export type Streams = 'always' | `with --${string}` | `without --${string}`;

export interface Expanded {
  command: AnyCommand;
  argv: readonly string[];
}

// What the caller of commands needs to know of one; arguments are parsed by its own schema.
export type AnyCommand = Omit<Command, 'run' | 'text' | 'short' | 'positionals'> & {
  readonly positionals?: readonly string[];
  readonly short?: Readonly<Record<string, string | undefined>>;
  run(args: never, context: CommandContext): Promise<CommandResult>;
  text?(result: never, style: Style): string;
};

export function defineCommand<Args extends z.ZodObject, Result>(
  command: Command<Args, Result>,
): Command<Args, Result> {
  return command;
}

export function ok<Result>(result: Result, meta?: Record<string, unknown>): CommandResult<Result> {
  return { exitCode: 0, result, ...(meta ? { meta } : {}) };
}

/** A command that printed its output as it went: nothing is left to print, in no format. */
export function streamed(exitCode: number): CommandResult<never> {
  return { exitCode, meta: { [STREAMED]: true } };
}

export const STREAMED = 'streamed';

/** @spec Errors: Shapes */
export function successEnvelope({ result, meta }: CommandResult): Envelope {
  return { ok: true, ...(result === undefined ? {} : { result }), ...(meta ? { meta } : {}) };
}
