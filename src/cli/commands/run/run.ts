import { z } from 'zod';
import {
  type CommandDetail,
  type CommandResult,
  getCommand,
  listCommands,
  PluginId,
  runCommand,
} from '../../../contracts/index.ts';
import type { CommandContext } from '../../context.ts';
import { type AnyCommand, defineCommand } from '../../define-command.ts';
import { splitWords } from '../../globals.ts';
import { UsageError } from '../../parse-args.ts';
import { flagsOf, inFlags, inputOf } from './flags.ts';

const HINT = 'Run svc run <plugin> --help to list its commands.';

/**
 * Runs a plugin command in the REST service. The flags are derived from the command's input schema at run time. @spec
 * docs/plugins.md "Commands"
 */
export const run = defineCommand({
  name: 'run',
  summary: "Run a plugin's command; its flags come from its input schema",
  example: 'svc run github summary --repository octo/hello',
  verbatim: true,
  args: z.object({
    plugin: z.string().describe('plugin id'),
    command: z.string().describe('command of the plugin'),
  }),
  async run() {
    throw new UsageError('svc run needs a plugin and a command.', { hint: HINT });
  },
  async expand(argv, context) {
    const { words, rest } = splitWords(argv, () => 2);
    const [plugin, command] = words;
    if (plugin === undefined) return undefined;
    // Removes the first `--`, because all arguments before and after `--` are flags of the plugin's command.
    const flags = rest.filter((_, index) => index !== rest.indexOf('--'));
    const pluginId = PluginId.safeParse(plugin);
    if (!pluginId.success) throw new UsageError(`"${plugin}" is not a valid plugin id.`, { hint: HINT });
    if (command === undefined) return { command: await listing(pluginId.data, context), argv: flags };
    const params = { pluginId: pluginId.data, commandId: command };
    const detail = await context.client.call(getCommand, { params });
    return { command: concrete(detail, params), argv: flags };
  },
});

/** Defines the command for `svc run <plugin>`, which lists the commands of the plugin. */
async function listing(pluginId: PluginId, { client }: CommandContext): Promise<AnyCommand> {
  const { items } = await client.call(listCommands);
  const own = items.filter((item) => item.pluginId === pluginId);
  const names = own.map(({ id, description }) => `  ${id}${description ? `  ${description}` : ''}`);
  const summary =
    own.length === 0
      ? `No loaded plugin ${pluginId} has commands. "svc plugins list" shows all plugins.`
      : `Commands of ${pluginId}:\n${names.join('\n')}`;
  return defineCommand({
    name: `run ${pluginId} <command>`,
    summary,
    example: `svc run ${pluginId} ${own[0]?.id ?? '<command>'}`,
    args: z.object({}),
    async run(): Promise<CommandResult> {
      throw new UsageError(summary, { hint: HINT });
    },
  });
}

/** Defines a CLI command that runs a command of a plugin. */
function concrete(
  { id, pluginId, description, input }: CommandDetail,
  params: { pluginId: PluginId; commandId: string },
): AnyCommand {
  const flags = flagsOf(input);
  return defineCommand({
    name: `run ${pluginId} ${id}`,
    summary: description ?? `The command ${id} of ${pluginId}`,
    example: `svc run ${pluginId} ${id}${flags.example}`,
    verbatim: true,
    args: flags.args,
    async run(args, { client, cwd }): Promise<CommandResult> {
      const input = await inputOf(args, flags, cwd);
      try {
        return await client.call(runCommand, { params, body: { input } });
      } catch (error) {
        throw inFlags(error, flags);
      }
    },
  });
}
