import { argumentsOf } from '../command-arguments.ts';
import type { Argument } from '../command-description.ts';
import type { AnyCommand } from '../define-command.ts';
import { GLOBAL_FLAGS } from '../globals.ts';
import { type Candidate, FILES, globalFlags } from './candidate.ts';
import { liveValues, type ValueRequest } from './live-values.ts';

/** Names of arguments that are completed with file names. */
const FILE_ARGUMENTS = new Set([
  'archive',
  'config',
  'file',
  'folder',
  'home',
  'out',
  'output',
  'path',
  'source',
]);

/** Returns the completion candidates for the argument at the cursor. `rest` contains the preceding arguments. */
export async function argumentCandidates(
  command: AnyCommand,
  rest: readonly string[],
  typed: string,
): Promise<Candidate[]> {
  const all = argumentsOf(command);
  const flags = all.filter(({ kind }) => kind === 'flag');
  const flagWithoutValue = flags.find((flag) => flag.type !== 'boolean' && isForm(flag, rest.at(-1)));
  const given = positionalValues(rest, flags);
  const values = (argument: Argument) => valuesOf(command, argument, { given, before: rest });
  if (flagWithoutValue) return values(flagWithoutValue);
  const [, name, value] = /^--([a-z-]+)=(.*)$/.exec(typed) ?? [];
  if (name !== undefined && value !== undefined) {
    const flag = flags.find((each) => each.name === name);
    const found = flag ? await values(flag) : [];
    return found
      .filter((each) => each !== FILES)
      .map((each) => ({ ...each, value: `--${name}=${each.value}` }));
  }
  if (typed.startsWith('-')) return [...flags.map(flagCandidate), ...globalFlags()];
  const positionals = all.filter(({ kind }) => kind === 'argument');
  const last = positionals.at(-1);
  const next = positionals[given.length] ?? (last?.list ? last : undefined);
  if (!next) return [];
  return (await values(next)).filter(({ value }) => !next.list || !given.includes(value));
}

async function valuesOf(
  command: AnyCommand,
  argument: Argument,
  context: Pick<ValueRequest, 'given' | 'before'>,
): Promise<Candidate[]> {
  if (argument.choices) return argument.choices.map((value) => ({ value }));
  const live = await liveValues({ command: command.name, argument: argument.key, ...context });
  if (live) return live;
  return FILE_ARGUMENTS.has(argument.key) || argument.placeholder === 'file' ? [FILES] : [];
}

function flagCandidate({ name, description }: Argument): Candidate {
  return { value: `--${name}`, ...(description === '' ? {} : { description }) };
}

function isForm({ name, short }: Argument, token: string | undefined): boolean {
  return token === `--${name}` || (short !== undefined && token === `-${short}`);
}

/** Returns the positional values in `rest`, without flags and their values. */
function positionalValues(rest: readonly string[], flags: readonly Argument[]): string[] {
  const found: string[] = [];
  for (let i = 0; i < rest.length; i++) {
    const token = rest[i]!;
    if (!token.startsWith('-')) found.push(token);
    else if (flags.some((flag) => flag.type !== 'boolean' && isForm(flag, token))) i++;
    else if (GLOBAL_FLAGS.some(({ name, value }) => value !== undefined && token === `--${name}`)) i++;
  }
  return found;
}
