import { version } from '../kit/files/paths.ts';
import type { CommandEntry } from './command-table/command-entry.ts';
import { described } from './command-table/command-entry-text.ts';
import { COMMANDS, verbsOf } from './command-table/command-table.ts';
import { NOUNS } from './command-table/nouns.ts';
import { GLOBAL_FLAGS } from './globals.ts';
import { definitions } from './wrap.ts';

/** Returns the text of `svc --help`: all commands by group, and all nouns with their verbs. */
export function rootHelp(width: number): string {
  const shown = COMMANDS.filter((entry) => !entry.hidden);
  const groups = [...new Set(shown.map((entry) => entry.group))];
  return [
    `svc ${version}: webhooks in, plugin code in isolation, durable workflows, one gateway`,
    '',
    'Usage: svc <command> [arguments] [flags]',
    ...groups.flatMap((group) => [
      '',
      `${group}:`,
      ...definitions(groupRows(shown.filter((entry) => entry.group === group)), width),
    ]),
    '',
    'Global flags:',
    ...definitions(
      GLOBAL_FLAGS.map(({ name, value, summary }) => [value ? `--${name} <${value}>` : `--${name}`, summary]),
      width,
    ),
    '',
    'First steps:',
    '  $ svc init my-project && cd my-project',
    '  $ svc up -d',
    '',
    'svc <command> --help shows details; svc commands lists all with examples.',
  ].join('\n');
}

export function nounHelp(noun: string, width: number): string {
  return [
    ...(NOUNS[noun] ? [NOUNS[noun], ''] : []),
    `Usage: svc ${noun} <verb> [arguments] [flags]`,
    ...verbsOf(noun).flatMap((entry) => ['', ...described(entry, width)]),
    '',
    `svc ${noun} <verb> --help shows the arguments.`,
  ].join('\n');
}

/** Returns one row per single-word command and one row per noun, in the order of the command table. */
function groupRows(entries: readonly CommandEntry[]): Array<[string, string]> {
  const firsts = [...new Set(entries.map(({ name }) => name.split(' ')[0]!))];
  return firsts.map((first) => {
    const single = entries.find(({ name }) => name === first);
    if (single) return [first, single.summary];
    const verbs = entries
      .filter(({ name }) => name.startsWith(`${first} `))
      .map(({ name }) => name.split(' ')[1]);
    return [first, `${NOUNS[first] ?? ''}\n${verbs.join(', ')}`];
  });
}
