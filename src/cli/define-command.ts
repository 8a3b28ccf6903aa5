import type { z } from 'zod';
import type { CommandResult } from '../contracts/index.ts';
import type { Streams } from './command-description.ts';
import type { CommandContext } from './context.ts';
import type { RecordShape } from './json-records.ts';
import type { Style } from './style.ts';

/**
 * Definition of a command. Required keys of `args` are positional, in order. Other keys are flags unless `positionals`
 * lists the key. Only streaming commands write output themselves.
 */
export interface Command<Args extends z.ZodObject = z.ZodObject, Result = unknown> extends RecordShape {
  /** Full name of the command, such as `webhooks provision`. */
  readonly name: string;
  readonly summary: string;
  readonly args: Args;
  readonly positionals?: ReadonlyArray<keyof z.output<Args> & string>;
  /** One-letter forms of flags, by argument key. */
  readonly short?: { readonly [key in keyof z.output<Args>]?: string };
  readonly example: string;
  /** Whether `help` leaves out the command, because the command is internal. */
  readonly hidden?: boolean;
  /**
   * Condition under which the command streams its output. With `--json`, a stream has one JSON document per line. By
   * default, the command never streams.
   */
  readonly streams?: Streams;
  run(args: z.output<Args>, context: CommandContext): Promise<CommandResult<Result>>;
  /**
   * Returns a command to run instead of this command, for arguments known only at run time. If the result is undefined,
   * this command runs.
   */
  expand?(argv: readonly string[], context: CommandContext): Promise<Expanded | undefined>;
  /** Formats the result for the terminal. Without this function, the CLI prints a generic view. */
  text?(result: Result, style: Style): string;
}

export interface Expanded {
  command: AnyCommand;
  argv: readonly string[];
}

/** A command whose argument and result types are erased. The schema of the command still validates the arguments. */
export type AnyCommand = Omit<Command, 'short' | 'positionals'> & {
  readonly positionals?: readonly string[];
  readonly short?: Readonly<Record<string, string | undefined>>;
};

export function defineCommand<Args extends z.ZodObject, Result>(
  command: Command<Args, Result>,
): Command<Args, Result> {
  return command;
}

export function ok<Result>(result: Result, meta?: Record<string, unknown>): CommandResult<Result> {
  return { exitCode: 0, result, ...(meta ? { meta } : {}) };
}

/** Returns the result of a command that has already printed its output. */
export function streamed(exitCode: number): CommandResult<never> {
  return { exitCode, meta: { [STREAMED]: true } };
}

export const STREAMED = 'streamed';
