import { z } from 'zod';
import type { CommandDescription } from '../command-description.ts';
import { described } from '../command-table/command-entry-text.ts';
import { defineCommand, ok } from '../define-command.ts';
import { describeGlobals } from '../describe-commands.ts';
import { helpWidth } from '../wrap.ts';

interface CommandTree {
  commands: CommandDescription[];
  globalFlags: ReturnType<typeof describeGlobals>;
}

/** Defines `svc commands`, which lists all commands, for users and for programs that call svc. */
export const commands = defineCommand({
  name: 'commands',
  summary: 'List all commands with examples; --json describes each argument',
  example: 'svc commands --json',
  args: z.object({}),
  run: async (_args, context) =>
    ok<CommandTree>({ commands: await context.describeCommands(), globalFlags: describeGlobals() }),
  text({ commands }: CommandTree) {
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
