import { argumentsOf } from './command-arguments.ts';
import type { Argument, CommandDescription, DescribedArgument } from './command-description.ts';
import { usageOf } from './command-help.ts';
import type { CommandEntry } from './command-table/command-entry.ts';
import { GLOBAL_FLAGS } from './globals.ts';

/** Describes all commands that are not hidden. Loads every command module, which is slow. */
export async function describeCommands(entries: readonly CommandEntry[]): Promise<CommandDescription[]> {
  const shown = entries.filter(({ hidden }) => !hidden);
  return Promise.all(
    shown.map(async ({ name, summary, group, example, load }) => {
      const command = await load();
      const all = argumentsOf(command);
      const of = (kind: Argument['kind']) => all.filter((each) => each.kind === kind).map(toDescription);
      return {
        name,
        summary,
        group,
        example,
        usage: usageOf(command),
        streams: command.streams ?? 'never',
        arguments: of('argument'),
        flags: of('flag'),
      };
    }),
  );
}

export function describeGlobals(): DescribedArgument[] {
  return GLOBAL_FLAGS.map(({ name, value, summary }) => ({
    name,
    type: value ? 'string' : 'boolean',
    list: false,
    required: false,
    description: summary,
  }));
}

function toDescription({
  key: _key,
  kind: _kind,
  placeholder: _placeholder,
  ...rest
}: Argument): DescribedArgument {
  return rest;
}
