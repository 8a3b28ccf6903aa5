import { argumentsOf } from './command-arguments.ts';
import type { Argument } from './command-description.ts';
import type { AnyCommand } from './define-command.ts';
import { GLOBAL_FLAGS } from './globals.ts';
import { definitions, shellExample, wrap } from './wrap.ts';

export function commandHelp(command: AnyCommand, width: number): string {
  const all = argumentsOf(command);
  const positionals = all.filter(({ kind }) => kind === 'argument');
  const flags = all.filter(({ kind }) => kind === 'flag');
  const globals = `Global flags: ${GLOBAL_FLAGS.map(({ name }) => `--${name}`).join(', ')}; see svc --help.`;
  return [
    ...command.summary.split('\n').flatMap((line) => wrap(line, width)),
    '',
    `Usage: ${usageOf(command)}`,
    ...section(
      'Arguments',
      positionals.map((each) => [each.name, explain(each)] as const),
      width,
    ),
    ...section(
      'Flags',
      flags.map((each) => [flagForm(each), explain(each)] as const),
      width,
    ),
    '',
    'Example:',
    ...shellExample(command.example, width),
    '',
    ...wrap(globals, width),
  ].join('\n');
}

/** Returns the usage line of a command, such as `svc logs [service...] [flags]`. */
export function usageOf(command: AnyCommand): string {
  const all = argumentsOf(command);
  const positionals = all
    .filter(({ kind }) => kind === 'argument')
    .map(({ name, required, list }) => {
      const form = `${name}${list ? '...' : ''}`;
      return required ? `<${form}>` : `[${form}]`;
    });
  const flags = all.some(({ kind }) => kind === 'flag') ? ['[flags]'] : [];
  return [`svc ${command.name}`, ...positionals, ...flags].join(' ');
}

/** Returns a flag as help shows it, such as `-n, --lines <n>`. */
export function flagForm({ name, short, placeholder }: Argument): string {
  return `${short ? `-${short}, ` : ''}--${name}${placeholder ? ` <${placeholder}>` : ''}`;
}

/** Returns the description of an argument with its choices, repetition and default from the schema. */
export function explain({ description, choices, list, kind, placeholder, ...rest }: Argument): string {
  const mentions = (text: string): boolean => description.includes(text);
  const facts = [
    ...(choices && placeholder !== choices.join('|') && !choices.every(mentions) ? [choices.join(', ')] : []),
    ...(list && kind === 'flag' && !/more than once|repeat/.test(description) ? ['may be repeated'] : []),
    ...(rest.default === undefined || mentions('default') ? [] : [`default: ${String(rest.default)}`]),
  ];
  if (facts.length === 0) return description;
  return description === '' ? facts.join('; ') : `${description} (${facts.join('; ')})`;
}

function section(title: string, rows: ReadonlyArray<readonly [string, string]>, width: number): string[] {
  return rows.length === 0 ? [] : ['', `${title}:`, ...definitions(rows, width)];
}
