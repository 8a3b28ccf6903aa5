import { z } from 'zod';

/** Names of tools and prompts. */
export const TOOL_NAME = /^[a-z0-9_-]{1,48}$/;

/** Offers a command or workflow to agents as a tool. @spec docs/mcp.md "Offer commands and workflows" */
export const McpExposure = z.strictObject({
  expose: z.boolean(),
  /** Name of the tool. The default follows from the ids. */
  name: z.string().regex(TOOL_NAME, 'must consist of 1 to 48 of a-z, 0-9, _ and -').optional(),
  title: z.string().min(1).max(100).optional(),
  description: z.string().min(1).max(2000).optional(),
  readOnly: z.boolean().default(false),
  destructive: z.boolean().default(false),
});
export type McpExposure = z.infer<typeof McpExposure>;

/** Names of the platform's own tools, which commands and workflows must not take. A test compares them. */
export const PLATFORM_TOOL_NAMES: readonly string[] = [
  'approval_answer',
  'deliveries_search',
  'delivery_explain',
  'delivery_replay',
  'delivery_show',
  'events_ack',
  'events_nack',
  'events_wait',
  'logs_search',
  'run_cancel',
  'run_rerun',
  'run_show',
  'run_start',
  'run_wait',
  'runs_list',
  'trace_show',
  'workflows_list',
];

/** Returns the name of a command's tool: `acme_shop_ship` for the command `ship` of `@acme/shop`. */
export function commandToolName(pluginId: string, commandId: string, { name }: McpExposure): string {
  return name ?? offeredName(`${pluginId}_${commandId}`);
}

/** Returns the name of a workflow's tool: `workflow_release` for the workflow `release`. */
export function workflowToolName(workflowId: string, { name }: McpExposure): string {
  return name ?? offeredName(`workflow_${workflowId}`);
}

/** Returns the name for ids: lower case, without `@`, other characters replaced. */
export function offeredName(text: string): string {
  return text
    .replace(/^@/, '')
    .replace('_@', '_')
    .toLowerCase()
    .replace(/[^a-z0-9_-]/g, '_');
}

/** Returns what is wrong with the name of a tool, or undefined. */
export function toolNameProblem(name: string): string | undefined {
  if (!TOOL_NAME.test(name))
    return `the tool name "${name}" has ${name.length} characters, at most 48 are allowed: set mcp.name`;
  if (PLATFORM_TOOL_NAMES.includes(name)) return `the platform has a tool "${name}" of its own: set mcp.name`;
  return undefined;
}
