import { Command as Commander, CommanderError, Option } from 'commander';
import { PlatformError } from '../kit/errors/errors.ts';
import { argumentsOf, kebab } from './command-arguments.ts';
import type { Argument } from './command-description.ts';
import { commandHelp, explain, flagForm } from './command-help.ts';
import type { AnyCommand } from './define-command.ts';
import { GLOBAL_FLAGS, type GlobalFlags } from './globals.ts';
import { problemText } from './problem-text.ts';
import { helpWidth } from './wrap.ts';

/** Error for invalid arguments. The exit code is 2. */
export class UsageError extends PlatformError {
  constructor(message: string, details: Record<string, unknown> = {}) {
    super('VALIDATION_ERROR', message, { details });
    this.name = 'UsageError';
  }
}

export interface ParsedArgs {
  args: Record<string, unknown>;
  globals: GlobalFlags;
}

/** The parsed arguments, or the help text if help was requested. */
export type ParseOutcome = ParsedArgs | { help: string };

/** Parses and validates the arguments of a command. Throws UsageError with the name of each invalid argument. */
export function parseArgs(command: AnyCommand, argv: readonly string[]): ParseOutcome {
  const { parser, keys, positionals } = createParser(command);
  parser.configureOutput({ writeOut: () => {}, writeErr: () => {} });
  try {
    parser.parse([...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed')
      return { help: commandHelp(command, helpWidth(process.stdout)) };
    throw new UsageError(missingArgument(command, error) ?? sentence(error.message), {
      hint: `Run svc ${command.name} --help for usage.`,
    });
  }
  const given = { ...parser.opts(), ...byName(positionals, parser.processedArgs) };
  const own = Object.fromEntries(
    Object.entries(given).filter(([key, value]) => keys.has(key) && value !== undefined),
  );
  return { args: validate(command, own, new Set(positionals)), globals: globalsOf(parser.opts()) };
}

/** Parses only the global flags, so that errors are printed correctly before the command is known. */
export function parseGlobals(argv: readonly string[]): GlobalFlags {
  const parser = new Commander().allowUnknownOption().allowExcessArguments().helpOption(false).exitOverride();
  addGlobals(parser);
  parser.configureOutput({ writeErr: () => {} });
  try {
    parser.parse([...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
  }
  return globalsOf(parser.opts());
}

function createParser(command: AnyCommand) {
  const all = argumentsOf(command);
  const parser = new Commander(`svc ${command.name}`).exitOverride().allowExcessArguments(false);
  for (const argument of all) {
    const { kind, name, required, list } = argument;
    const form = `${name}${list ? '...' : ''}`;
    if (kind === 'argument') parser.argument(required ? `<${form}>` : `[${form}]`);
    else parser.addOption(toOption(argument));
  }
  addGlobals(parser);
  const positionals = all.filter(({ kind }) => kind === 'argument').map(({ key }) => key);
  return { parser, keys: new Set(all.map(({ key }) => key)), positionals };
}

function addGlobals(parser: Commander): void {
  for (const { name, value } of GLOBAL_FLAGS) parser.option(value ? `--${name} <${value}>` : `--${name}`);
}

function toOption(argument: Argument): Option {
  const option = new Option(flagForm(argument));
  if (argument.list)
    option.argParser((value: string, before: string[] | undefined) => [...(before ?? []), value]);
  return option;
}

function validate(
  command: AnyCommand,
  given: Record<string, unknown>,
  positionals: Set<string>,
): Record<string, unknown> {
  const parsed = command.args.safeParse(given, { reportInput: true });
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => {
    const key = String(issue.path[0] ?? '');
    const path = positionals.has(key) ? `<${kebab(key)}>` : `--${kebab(key)}`;
    return { path, message: problemText(issue) };
  });
  const message = problems.map(argumentProblem).join('\n');
  throw new UsageError(message, { problems, hint: `Run svc ${command.name} --help for usage.` });
}

/** Formats a problem with an argument, such as `--text is missing.` or `--limit: must be a number`. */
export function argumentProblem({ path, message }: { path: string; message: string }): string {
  return message.startsWith('is missing') ? `${path} ${message}.` : `${path}: ${message}`;
}

function globalsOf(opts: Record<string, unknown>): GlobalFlags {
  const text = (name: string) => (typeof opts[name] === 'string' ? { [name]: opts[name] } : {});
  return {
    json: opts.json === true,
    quiet: opts.quiet === true,
    debug: opts.debug === true,
    input: opts.input !== false,
    yes: opts.yes === true,
    ...text('namespace'),
    ...text('profile'),
    ...text('config'),
    ...text('url'),
    ...text('token'),
  };
}

const byName = (names: string[], values: unknown[]) =>
  Object.fromEntries(names.map((name, index) => [name, values[index]]));

/** Describes a missing argument, or returns undefined for any other error. */
function missingArgument(command: AnyCommand, { code, message }: CommanderError): string | undefined {
  if (code !== 'commander.missingArgument') return undefined;
  const name = /'(.*)'/.exec(message)?.[1];
  const argument = argumentsOf(command).find((each) => each.name === name);
  if (!argument) return undefined;
  const { placeholder: _, ...rest } = argument;
  return `<${name}> is missing: ${explain(rest)}.`;
}

/** Rephrases Commander's `error: unknown option '--x'` as a sentence. */
function sentence(message: string): string {
  const text = message.replace(/^error: /, '').replace(/\n\((Did you mean .*)\)$/, '. $1');
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.?]$/.test(text) ? '' : '.');
}
