import { z } from 'zod';
import { described } from '../command-table/described.ts';
import type { CommandEntry } from '../command-table/entry.ts';
import { type Command, defineCommand, ok } from '../define-command.ts';
import { type CommandDescription, describeCommands, describeGlobals } from '../describe-commands.ts';
import { helpWidth } from '../wrap.ts';

interface CommandTree {
  commands: CommandDescription[];
  globalFlags: ReturnType<typeof describeGlobals>;
}

const NONE = z.object({});

/** The command that prints the command tree, for users and for programs that call commands. */
export function commandsOf(entries: readonly CommandEntry[]): Command<typeof NONE, CommandTree> {
  return defineCommand({
    name: 'commands',
    summary: 'List all commands with examples; --json describes each argument',
    example: 'svc commands --json',
    args: NONE,
    run: async () => ok({ commands: await describeCommands(entries), globalFlags: describeGlobals() }),
    text({ commands }) {
      const groups = [...new Set(commands.map(({ group }) => group))];
      const width = helpWidth(process.stdout);
      return groups
        .map((group) =>
          [
            `${group}:`,
            ...commands.filter((entry) => entry.group === group).flatMap((entry) => described(entry, width)),
          ].join('\n'),
        )
        .join('\n\n');
    },
  });
}
