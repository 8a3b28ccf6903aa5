import { z } from 'zod';
import { PluginId } from './ids.ts';
import {
  MAX_MCP_DESCRIPTION_CHARS,
  MAX_MCP_TOOL_NAME_CHARS,
  MAX_MCP_TOOLS,
  MAX_MCP_TOOLS_CHARS,
} from './mcp-limits.ts';
import { SecretName } from './secrets.ts';

const Schema = z.record(z.string(), z.unknown());

/** A tool of an MCP server as its administrator approved it. @spec docs/mcp-servers.md "Changed tools" */
export const McpTool = z.strictObject({
  name: z.string().min(1).max(MAX_MCP_TOOL_NAME_CHARS),
  title: z.string().max(MAX_MCP_DESCRIPTION_CHARS).optional(),
  description: z.string().max(MAX_MCP_DESCRIPTION_CHARS).optional(),
  inputSchema: Schema,
  outputSchema: Schema.optional(),
  annotations: z.record(z.string(), z.unknown()).optional(),
  /** SHA-256 of the fields above. A tool whose digest differs is not called. */
  digest: z.string().regex(/^sha256-[A-Za-z0-9_-]{43}$/),
});
export type McpTool = z.infer<typeof McpTool>;

/** Name of an environment variable, or of a request header for servers with a URL. */
const ValueName = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_-]{0,127}$/, 'must be the name of a variable or header');

/** Variables that would change how the program is started, and headers that the platform sends. */
const RESERVED_VARIABLES = /^(?:NODE_.*|LD_.*|DYLD_.*|SVC_.*|GATEWAY_.*|PATH|HOME|TMPDIR|.*_PROXY)$/i;
const RESERVED_HEADERS = /^(?:accept|content-.*|host|cookie|origin|mcp-.*)$/i;

const Values = <Value extends z.ZodType>(value: Value) =>
  z.record(ValueName, value).refine((values) => Object.keys(values).length <= 50, 'has more than 50 entries');

/** Reports a variable or header of a server that the platform sets itself. */
export function refuseReservedNames(
  { url, env, secrets }: McpServerSource,
  { addIssue }: z.RefinementCtx,
): void {
  const isProgram = url === undefined;
  const reserved = isProgram ? RESERVED_VARIABLES : RESERVED_HEADERS;
  const name = [...Object.keys(env), ...Object.keys(secrets)].find((each) => reserved.test(each));
  if (name === undefined) return;
  const what = isProgram ? 'variable' : 'header';
  addIssue({ code: 'custom', message: `${name} is set by the platform; choose another ${what}` });
}

/** What starts or reaches a server. */
export const McpServerSource = z.strictObject({
  /** npm package of a server that speaks over stdin and stdout. */
  package: PluginId.optional(),
  /** Name of the program, if the package has several. */
  bin: z
    .string()
    .regex(/^[\w.@-]{1,128}$/)
    .optional(),
  /** Address of a server that speaks over HTTP. */
  url: z
    .url({ protocol: /^https?$/ })
    .max(2048)
    .optional(),
  args: z.array(z.string().max(1024)).max(50).default([]),
  /** Environment variables of the server with their values, which are not secret. */
  env: Values(z.string().max(4096)).default({}),
  /** Secrets of the tenant that the server receives as environment variable, or over HTTP as header. */
  secrets: Values(SecretName).default({}),
});
export type McpServerSource = z.infer<typeof McpServerSource>;

/** Third-party MCP server whose tools are the commands of a plugin. @spec docs/mcp-servers.md */
export const McpServer = McpServerSource.extend({
  /** Exact version of the package. */
  version: z.string().min(1).max(64).optional(),
  /** Program of the package, relative to the plugin. */
  entry: z
    .string()
    .regex(/^node_modules\/(?!.*(?:^|\/)\.\.?(?:\/|$))[\w@./+-]+$/, 'must be a file in node_modules')
    .max(512)
    .optional(),
  tools: z
    .array(McpTool)
    .max(MAX_MCP_TOOLS)
    .refine((tools) => JSON.stringify(tools).length <= MAX_MCP_TOOLS_CHARS, {
      message: `has more than ${MAX_MCP_TOOLS_CHARS} characters`,
    }),
})
  .refine(
    ({ package: name, version, entry, url, args, env }) =>
      url === undefined
        ? name !== undefined && version !== undefined && entry !== undefined
        : name === undefined && entry === undefined && args.length === 0 && Object.keys(env).length === 0,
    'needs either package, version and entry, or url without args and env',
  )
  .superRefine(refuseReservedNames);
export type McpServer = z.infer<typeof McpServer>;

/** Tool as a server lists it. The platform bounds and checks these fields before it reads them. */
export type ListedMcpTool = Omit<McpTool, 'digest'>;

/** Returns the command of a tool: `files_read_file` for the tool `read_file` of the plugin `@acme/files`. */
export function mcpCommandId(pluginId: string, tool: string): string {
  const plugin = pluginId.slice(pluginId.lastIndexOf('/') + 1);
  return `${plugin}_${tool}`.toLowerCase().replace(/[^a-z0-9_-]/g, '_');
}
