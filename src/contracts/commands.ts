import { z } from 'zod';
import { CommandError } from './command-result.ts';
import { NoFilters } from './common.ts';
import { endpoint } from './endpoint.ts';
import { PluginId } from './ids.ts';

export const CommandItem = z
  .object({ pluginId: z.string(), id: z.string(), description: z.string().nullable() })
  .meta({ id: 'CommandItem' });
export type CommandItem = z.infer<typeof CommandItem>;

const JsonSchema = z.record(z.string(), z.unknown()).nullable();

export const CommandDetail = CommandItem.extend({
  input: JsonSchema.describe('JSON Schema of the input; null: anything'),
  output: JsonSchema.describe('JSON Schema of the result; null: anything'),
}).meta({ id: 'CommandDetail' });
export type CommandDetail = z.infer<typeof CommandDetail>;

/**
 * Outcome of a plugin command. The HTTP call succeeds even if the command fails. `exitCode` is 0 only if the command
 * succeeded.
 */
export const CommandOutcome = z
  .object({
    exitCode: z.number().int(),
    result: z.unknown().optional(),
    meta: z.record(z.string(), z.unknown()).optional(),
    error: CommandError.optional(),
  })
  .meta({ id: 'CommandOutcome' });
export type CommandOutcome = z.infer<typeof CommandOutcome>;

const tags = ['commands'];
const params = z.object({ pluginId: PluginId, commandId: z.string().min(1).max(128) });

export const listCommands = endpoint({
  method: 'GET',
  path: '/api/v1/commands',
  summary: 'List the commands of plugins',
  tags,
  query: NoFilters,
  reply: z.object({ items: z.array(CommandItem) }),
});

export const getCommand = endpoint({
  method: 'GET',
  path: '/api/v1/commands/:pluginId/:commandId',
  summary: 'Show a command with the schemas of its input and result',
  tags,
  params,
  reply: CommandDetail,
  errors: ['PLUGIN_NOT_FOUND', 'NOT_FOUND'],
});

/**
 * Executes a plugin command for `svc run`. Only operators are allowed to call this endpoint. @spec docs/plugins.md
 * "Commands"
 */
export const runCommand = endpoint({
  method: 'POST',
  path: '/api/v1/commands/:pluginId/:commandId',
  summary: 'Run a command of a plugin, in the namespace of the caller',
  tags,
  params,
  body: z.strictObject({ input: z.unknown().optional() }),
  reply: CommandOutcome,
  errors: ['FORBIDDEN', 'PLUGIN_NOT_FOUND', 'NOT_FOUND', 'VALIDATION_ERROR', 'EXECUTION_TIMEOUT'],
});
