import {
  MAX_MCP_DESCRIPTION_CHARS,
  MAX_MCP_TOOL_NAME_CHARS,
  MAX_MCP_TOOLS,
  MAX_MCP_TOOLS_CHARS,
} from '../../../contracts/mcp-limits.ts';
import type { ListedMcpTool } from '../../../contracts/mcp-servers.ts';
import { isRecord } from '../../../kit/data/is-record.ts';
import { compileJsonCheck } from '../../../kit/schemas/json-check.ts';
import { portable, toolSchemaFault } from '../../mcp/tool-schemas.ts';
import { messageOf } from '../failure.ts';
import { type Rpc, ServerFailure, withLimit } from './rpc.ts';

const LIST_MS = 20_000;
const MAX_PAGES = 50;
const MAX_REASON_CHARS = 300;
/** Names with other characters could imitate the output around them. */
const NAME = /^[\w.:/-]+$/;
const HINTS = ['title', 'readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'];

/** Reads all tools of a server, without a check of their fields. */
async function readTools(rpc: Rpc, signal: AbortSignal): Promise<Array<Record<string, unknown>>> {
  const limited = withLimit(signal, LIST_MS, 'list its tools');
  try {
    const found: Array<Record<string, unknown>> = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const reply = await rpc.request('tools/list', cursor === undefined ? {} : { cursor }, limited.signal);
      const { tools, nextCursor } = isRecord(reply) ? reply : {};
      if (!Array.isArray(tools)) throw new ServerFailure('its list of tools is not a list');
      found.push(...tools.slice(0, MAX_MCP_TOOLS + 1).filter(isRecord));
      if (found.length > MAX_MCP_TOOLS) throw new ServerFailure(`it has more than ${MAX_MCP_TOOLS} tools`);
      if (typeof nextCursor !== 'string' || nextCursor === '') return found;
      cursor = nextCursor;
    }
    throw new ServerFailure(`its list of tools has more than ${MAX_PAGES} pages`);
  } finally {
    limited.stop();
  }
}

/** Returns the tool of this name, or undefined if the server has none. Its fields are compared, but not used. */
export async function findTool(
  rpc: Rpc,
  name: string,
  signal: AbortSignal,
): Promise<ListedMcpTool | undefined> {
  const tool = (await readTools(rpc, signal)).find((one) => one.name === name);
  return tool && toolOf(tool);
}

/** Lists the tools for an administrator to approve. Throws ServerFailure for a tool that cannot be offered. */
export async function listTools(rpc: Rpc, signal: AbortSignal): Promise<ListedMcpTool[]> {
  const tools = (await readTools(rpc, signal)).map(toolOf);
  const names = new Set<string>();
  for (const tool of tools) {
    const fault = toolFault(tool) ?? (await compileFault(tool));
    const shown = JSON.stringify(String(tool.name).slice(0, MAX_MCP_TOOL_NAME_CHARS));
    if (fault !== undefined) throw new ServerFailure(`its tool ${shown} is refused: ${fault}`);
    if (names.has(tool.name)) throw new ServerFailure(`it has two tools ${shown}`);
    names.add(tool.name);
  }
  if (JSON.stringify(tools).length > MAX_MCP_TOOLS_CHARS)
    throw new ServerFailure(`its tools have more than ${MAX_MCP_TOOLS_CHARS} characters`);
  return tools;
}

/** Returns the fields of a tool that agents see. */
function toolOf(tool: Record<string, unknown>): ListedMcpTool {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  const hints = isRecord(annotations)
    ? Object.fromEntries(
        HINTS.filter((key) => annotations[key] !== undefined).map((key) => [key, annotations[key]]),
      )
    : {};
  return {
    name,
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    inputSchema,
    ...(outputSchema === undefined ? {} : { outputSchema }),
    ...(Object.keys(hints).length === 0 ? {} : { annotations: hints }),
  } as ListedMcpTool;
}

function toolFault({ name, title, description, inputSchema, outputSchema, annotations }: ListedMcpTool) {
  if (typeof name !== 'string' || name.length > MAX_MCP_TOOL_NAME_CHARS || !NAME.test(name))
    return `a name has at most ${MAX_MCP_TOOL_NAME_CHARS} letters, digits and . _ : / -`;
  for (const [what, text] of [
    ['title', title],
    ['description', description],
  ] as const)
    if (text !== undefined && (typeof text !== 'string' || text.length > MAX_MCP_DESCRIPTION_CHARS))
      return `its ${what} is not a text of at most ${MAX_MCP_DESCRIPTION_CHARS} characters`;
  if (!isRecord(inputSchema) || inputSchema.type !== 'object')
    return 'its inputSchema is not that of an object';
  if (outputSchema !== undefined && !isRecord(outputSchema)) return 'its outputSchema is not an object';
  if (JSON.stringify(annotations ?? {}).length > MAX_MCP_DESCRIPTION_CHARS)
    return 'its annotations are too long';
  for (const [what, schema] of [
    ['inputSchema', inputSchema],
    ['outputSchema', outputSchema],
  ] as const) {
    const fault = schema && toolSchemaFault(schema);
    if (fault) return `its ${what} is refused: ${fault}`;
  }
  return undefined;
}

async function compileFault({ inputSchema, outputSchema }: ListedMcpTool): Promise<string | undefined> {
  for (const [what, schema] of Object.entries({ inputSchema, outputSchema }))
    try {
      if (schema) await compileJsonCheck(portable(schema));
    } catch (error) {
      return `its ${what} cannot be compiled: ${messageOf(error).slice(0, MAX_REASON_CHARS)}`;
    }
  return undefined;
}
