import type { CommandResult } from '../../../contracts/index.ts';
import type { McpTool } from '../../../contracts/mcp-servers.ts';
import { isRecord } from '../../../kit/data/is-record.ts';
import { compileJsonCheck, type JsonCheck } from '../../../kit/schemas/json-check.ts';
import { portable } from '../../mcp/tool-schemas.ts';

/** Largest result of a tool, as JSON. Larger ones are refused, because a shortened result could mean something else. */
export const MAX_RESULT_CHARS = 1024 * 1024;
const MAX_BLOCKS = 1000;
const MAX_MESSAGE_CHARS = 2000;
const KINDS = ['text', 'image', 'audio', 'resource', 'resource_link'];

const checks = new WeakMap<McpTool, Promise<JsonCheck>>();

/** Converts a result of a tool. Its content comes from outside and is marked as such. */
export async function toolResult(tool: McpTool, value: unknown): Promise<CommandResult> {
  if (!isRecord(value))
    return failed('MCP_SERVER_FAILED', 'The MCP server sent a result that is not an object.');
  const { content = [], structuredContent, isError } = value;
  const blocks = Array.isArray(content) ? content.slice(0, MAX_BLOCKS).flatMap(blockOf) : [];
  const result = {
    untrusted: true,
    content: blocks,
    ...(isRecord(structuredContent) ? { structuredContent } : {}),
  };
  const chars = JSON.stringify(result).length;
  if (chars > MAX_RESULT_CHARS || (Array.isArray(content) && content.length > MAX_BLOCKS))
    return failed(
      'MCP_RESULT_TOO_LARGE',
      `The result of the tool "${tool.name}" has ${chars} characters; at most ${MAX_RESULT_CHARS} in ${MAX_BLOCKS} blocks are returned.`,
    );
  if (isError === true) {
    const text = blocks.flatMap((block) => (typeof block.text === 'string' ? [block.text] : [])).join('\n');
    const reason = text.slice(0, MAX_MESSAGE_CHARS) || 'it gave no reason';
    return failed('MCP_TOOL_FAILED', `The tool "${tool.name}" failed: ${reason}`, { untrusted: true });
  }
  const fault = await outputFault(tool, structuredContent);
  if (fault !== undefined)
    return failed(
      'MCP_TOOL_FAILED',
      `The result of the tool "${tool.name}" does not fit its schema: ${fault}`,
    );
  return { exitCode: 0, result };
}

/** Keeps the fields that the protocol defines. */
function blockOf(block: unknown): Array<Record<string, unknown>> {
  if (!isRecord(block) || typeof block.type !== 'string' || !KINDS.includes(block.type)) return [];
  const { type, text, data, mimeType, resource, uri, name, title, description } = block;
  const fields = { type, text, data, mimeType, resource, uri, name, title, description };
  return [Object.fromEntries(Object.entries(fields).filter(([, field]) => field !== undefined))];
}

async function outputFault(tool: McpTool, value: unknown): Promise<string | undefined> {
  if (!tool.outputSchema) return undefined;
  if (value === undefined) return 'it has no structuredContent';
  let check = checks.get(tool);
  if (!check) {
    check = compileJsonCheck(portable(tool.outputSchema));
    checks.set(tool, check);
  }
  const [fault] = (await check)(value);
  return fault && `${fault.path === '' ? '' : `${fault.path}: `}${fault.message}`;
}

export function failed(code: string, message: string, details: Record<string, unknown> = {}): CommandResult {
  return { exitCode: 1, error: { code, message, details } };
}
