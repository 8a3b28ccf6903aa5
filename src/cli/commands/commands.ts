import { z } from 'zod';
import { COMMANDS } from '../command-table.ts';
import { defineCommand, ok } from '../define-command.ts';
import { type CommandDescription, describeCommands, describeGlobals } from '../describe-commands.ts';
import { described } from '../help.ts';
import { helpWidth } from '../wrap.ts';

interface CommandTree {
  commands: CommandDescription[];
  globalFlags: ReturnType<typeof describeGlobals>;
}

/** Prints the command tree, for users and for programs that call commands. */
export const commands = defineCommand({
  name: 'commands',
  summary: 'List all commands with examples; --json describes each argument',
  example: 'svc commands --json',
  args: z.object({}),
  async run() {
    const tree: CommandTree = { commands: await describeCommands(COMMANDS), globalFlags: describeGlobals() };
    return ok(tree);
  },
  text() {
    const shown = COMMANDS.filter(({ hidden }) => !hidden);
    const groups = [...new Set(shown.map(({ group }) => group))];
    const width = helpWidth(process.stdout);
    return groups
      .map((group) =>
        [
          `${group}:`,
          ...shown.filter((entry) => entry.group === group).flatMap((entry) => described(entry, width)),
        ].join('\n'),
      )
      .join('\n\n');
  },
});
