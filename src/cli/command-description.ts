import type { Group } from './command-table/help-order.ts';

/** An argument of a command, derived from its schema for parsing, help, completion and `svc commands`. */
export interface Argument {
  key: string;
  /** Name on the command line without the leading dashes, such as `max-processes`. */
  name: string;
  /** Whether the argument is positional (`argument`) or named (`flag`). */
  kind: 'argument' | 'flag';
  type: 'string' | 'number' | 'boolean';
  /** Whether the argument accepts several values. */
  list: boolean;
  required: boolean;
  description: string;
  /** Placeholder of the value in help. Absent for switches. */
  placeholder?: string;
  /** One-letter form of a flag, such as `n`. */
  short?: string;
  choices?: readonly string[];
  default?: unknown;
}

export type DescribedArgument = Omit<Argument, 'key' | 'kind' | 'placeholder'>;

export type Streams = 'always' | `with --${string}` | `without --${string}`;

/** Description of a command for programs, in the output of `svc commands --json`. */
export interface CommandDescription {
  name: string;
  summary: string;
  group: Group;
  example: string;
  usage: string;
  /** Condition under which `--json` prints one JSON document per line. Otherwise, `--json` prints a single envelope. */
  streams: Streams | 'never';
  arguments: DescribedArgument[];
  flags: DescribedArgument[];
}
