import { version } from '../kit/paths.ts';
import type { CommandEntry } from './command-table/entry.ts';
import { COMMANDS, verbsOf } from './command-table.ts';
import { GLOBAL_FLAGS } from './globals.ts';

/** `svc --help`: every command by group, with an example each. */
export function rootHelp(): string {
  const shown = COMMANDS.filter((entry) => !entry.hidden);
  const groups = [...new Set(shown.map((entry) => entry.group))];
  return [
    `svc ${version}: webhooks in, plugin code in isolation, durable workflows, one authenticated gateway.`,
    '',
    'Usage: svc <command> [arguments] [flags]',
    ...groups.flatMap((group) => ['', `${group}:`, ...rows(shown.filter((entry) => entry.group === group))]),
    '',
    'Flags of every command:',
    ...flagRows(),
    '',
    'svc <command> --help tells more. First steps: svc up',
  ].join('\n');
}

/** `svc webhooks --help`. */
export function nounHelp(noun: string): string {
  return [`Usage: svc ${noun} <verb> [arguments] [flags]`, '', ...rows(verbsOf(noun))].join('\n');
}

function rows(entries: CommandEntry[]): string[] {
  const width = Math.max(...COMMANDS.filter((entry) => !entry.hidden).map(({ name }) => name.length));
  return entries.flatMap(({ name, summary, example }) => [
    `  ${name.padEnd(width)}  ${summary}`,
    `  ${' '.repeat(width)}    $ ${example}`,
  ]);
}

function flagRows(): string[] {
  const forms = GLOBAL_FLAGS.map(({ name, value }) => (value ? `--${name} <${value}>` : `--${name}`));
  const width = Math.max(...forms.map((form) => form.length));
  return GLOBAL_FLAGS.map(({ summary }, index) => `  ${forms[index]!.padEnd(width)}  ${summary}`);
}
