import { Command as Commander, CommanderError, Option } from 'commander';
import { z } from 'zod';
import { PlatformError } from '../kit/errors.ts';
import type { AnyCommand } from './define-command.ts';
import { GLOBAL_FLAGS, type GlobalFlags } from './globals.ts';

/** A call that cannot be understood: exit code 2. */
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

/** `help` holds the text to print when it was asked for. */
export type ParseOutcome = ParsedArgs | { help: string };

/** Reads a command's arguments by its own schema. Throws UsageError that names the argument and what it should be. */
export function parseArgs(command: AnyCommand, argv: readonly string[]): ParseOutcome {
  const { parser, keys, positionals } = createParser(command);
  let help = '';
  parser.configureOutput({ writeOut: (text) => (help += text), writeErr: () => {} });
  try {
    parser.parse([...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed') return { help: help.trimEnd() };
    throw new UsageError(sentence(error.message), {
      hint: `svc ${command.name} --help shows its arguments.`,
    });
  }
  const given = { ...parser.opts(), ...byName(positionals, parser.processedArgs) };
  const own = Object.fromEntries(
    Object.entries(given).filter(([key, value]) => keys.has(key) && value !== undefined),
  );
  return { args: validate(command, own, new Set(positionals)), globals: globalsOf(parser.opts()) };
}

/** The global flags alone; for failures before a command is known. */
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
  const shape = command.args.shape as Record<string, z.ZodType>;
  const parser = new Commander(`svc ${command.name}`)
    .description(command.summary)
    .exitOverride()
    .allowExcessArguments(false)
    .helpOption('-h, --help', 'show this help')
    .addHelpText('after', `\nExample:\n  $ ${command.example}`);
  const positionals: string[] = [];
  for (const [key, schema] of Object.entries(shape)) {
    const required = !schema.safeParse(undefined).success;
    if (required || command.positionals?.includes(key)) {
      positionals.push(key);
      const dots = isList(schema) ? '...' : '';
      parser.argument(
        required ? `<${kebab(key)}${dots}>` : `[${kebab(key)}${dots}]`,
        schema.description ?? '',
      );
    } else parser.addOption(toOption(key, schema, command.short?.[key]));
  }
  parser.optionsGroup('Flags of every command:');
  addGlobals(parser);
  return { parser, keys: new Set(Object.keys(shape)), positionals };
}

function addGlobals(parser: Commander): void {
  for (const { name, value, summary } of GLOBAL_FLAGS)
    parser.option(value ? `--${name} <${value}>` : `--${name}`, summary);
}

function toOption(key: string, schema: z.ZodType, short: string | undefined): Option {
  const long = `--${kebab(key)}`;
  const names = short ? `-${short}, ${long}` : long;
  const description = schema.description ?? '';
  if (bare(schema) instanceof z.ZodBoolean) return new Option(names, description);
  const option = new Option(`${names} <${placeholder(schema)}>`, description);
  if (isList(schema))
    option.argParser((value: string, before: string[] | undefined) => [...(before ?? []), value]);
  return option;
}

function placeholder(schema: z.ZodType): string {
  const meta = schema.meta() as { placeholder?: string } | undefined;
  return meta?.placeholder ?? (bare(schema) instanceof z.ZodNumber ? 'n' : 'value');
}

function validate(
  command: AnyCommand,
  given: Record<string, unknown>,
  positionals: Set<string>,
): Record<string, unknown> {
  const parsed = command.args.safeParse(given);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => {
    const key = String(issue.path[0] ?? '');
    const path = positionals.has(key) ? `<${kebab(key)}>` : `--${kebab(key)}`;
    return { path, message: issue.message };
  });
  const message = problems.map((problem) => `${problem.path}: ${problem.message}`).join('\n');
  throw new UsageError(message, { problems, hint: `svc ${command.name} --help shows its arguments.` });
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

function bare(schema: z.core.$ZodType): z.core.$ZodType {
  let current = schema;
  while (current instanceof z.ZodOptional || current instanceof z.ZodDefault) current = current.unwrap();
  return current;
}

const isList = (schema: z.ZodType): boolean => bare(schema) instanceof z.ZodArray;
const kebab = (key: string): string => key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
const byName = (names: string[], values: unknown[]) =>
  Object.fromEntries(names.map((name, index) => [name, values[index]]));

/** Commander's `error: unknown option '--x'` as ours read. */
function sentence(message: string): string {
  const text = message.replace(/^error: /, '').replace(/\n\((Did you mean .*)\)$/, '. $1');
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.?]$/.test(text) ? '' : '.');
}
