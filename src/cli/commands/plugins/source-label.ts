import { isMcpSource, parseMcpSource } from '../../../contracts/index.ts';

/** Returns the source of a plugin for people: that of an MCP server without its settings, which `--json` has. */
export function sourceLabel(source: string): string {
  if (!isMcpSource(source)) return source;
  const { url, package: name, range } = parseMcpSource(source);
  return `MCP server ${url ?? (range === undefined ? name : `${name}@${range}`)}`;
}
