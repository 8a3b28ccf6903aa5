import { createHash } from 'node:crypto';
import type { ListedMcpTool } from '../../contracts/mcp-servers.ts';
import { isRecord } from '../../kit/data/is-record.ts';

/** Deepest nesting of a tool's fields. Deeper values are refused before they are compared. */
const MAX_DEPTH = 64;

/**
 * Returns the digest of a tool as an agent sees it. The order of keys does not matter, because servers print their
 * schemas anew at each start. Throws RangeError for a value that nests too deep.
 */
export function toolDigest(tool: ListedMcpTool): string {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  const seen = { name, title, description, inputSchema, outputSchema, annotations };
  return `sha256-${createHash('sha256').update(canonical(seen, 0)).digest('base64url')}`;
}

function canonical(value: unknown, depth: number): string {
  if (depth > MAX_DEPTH) throw new RangeError(`nests deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item, depth + 1)).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value) ?? 'null';
  const entries = Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, item]) => `${JSON.stringify(key)}:${canonical(item, depth + 1)}`);
  return `{${entries.join(',')}}`;
}
