import { createHash } from 'node:crypto';
import type { ListedMcpTool } from '../../contracts/mcp-servers.ts';
import { canonicalJson } from '../../kit/data/json.ts';

/**
 * Returns the digest of a tool as an agent sees it. The order of keys does not matter, because servers print their
 * schemas anew at each start.
 */
export function toolDigest(tool: ListedMcpTool): string {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  const seen = { name, title, description, inputSchema, outputSchema, annotations };
  return `sha256-${createHash('sha256').update(canonicalJson(seen)).digest('base64url')}`;
}
