import { z } from 'zod';
import { PluginId } from './ids.ts';
import { McpServerSource, refuseReservedNames } from './mcp-servers.ts';

const PREFIX = 'mcp:';
const Texts = z.array(z.string().min(1).max(1024)).max(50).default([]);

/** How an administrator wraps an MCP server. Its text is the source of the plugin. @spec docs/mcp-servers.md */
export const McpPluginSource = McpServerSource.extend({
  /** Id of the plugin. */
  id: PluginId,
  /** Version or range of the package. The newest version by default. */
  range: z
    .string()
    .regex(/^[\w.^~<>=|*\- +]{1,64}$/)
    .optional(),
  /** Hosts that the server may reach. */
  network: Texts,
  read: Texts,
  write: Texts,
  /** Whether the tools are offered at `/mcp`. */
  expose: z.boolean().default(false),
})
  .refine(
    ({ package: name, url }) => (name === undefined) !== (url === undefined),
    'needs a package or a url, not both',
  )
  .superRefine(refuseReservedNames);
export type McpPluginSource = z.infer<typeof McpPluginSource>;

const LISTS = ['args', 'network', 'read', 'write'] as const;
const MAPS = ['env', 'secrets'] as const;
const TEXTS = ['id', 'package', 'range', 'bin', 'url'] as const;

/** Returns whether a source wraps an MCP server. */
export function isMcpSource(text: string): boolean {
  return text.startsWith(PREFIX);
}

/** Prints a source, such as `mcp:id=files&package=%40acme%2Ffiles`. */
export function mcpSourceText(source: McpPluginSource): string {
  const query = new URLSearchParams();
  for (const key of TEXTS) if (source[key] !== undefined) query.append(key, source[key]);
  for (const key of LISTS) for (const text of source[key]) query.append(key, text);
  for (const key of MAPS)
    for (const [name, value] of Object.entries(source[key])) query.append(key, `${name}=${value}`);
  if (source.expose) query.append('expose', 'true');
  return `${PREFIX}${query}`;
}

/** Parses the text of a source. Throws ZodError for an invalid source. */
export function parseMcpSource(text: string): McpPluginSource {
  const query = new URLSearchParams(text.slice(PREFIX.length));
  const known = new Set<string>([...TEXTS, ...LISTS, ...MAPS, 'expose']);
  const others = [...query.keys()].filter((key) => !known.has(key)).map((key) => [key, null]);
  return McpPluginSource.parse({
    ...Object.fromEntries(others),
    ...Object.fromEntries(TEXTS.flatMap((key) => (query.has(key) ? [[key, query.get(key)]] : []))),
    ...Object.fromEntries(LISTS.map((key) => [key, query.getAll(key)])),
    ...Object.fromEntries(MAPS.map((key) => [key, Object.fromEntries(query.getAll(key).map(pairOf))])),
    expose: query.get('expose') === 'true',
  });
}

function pairOf(text: string): [name: string, value: string] {
  const at = text.indexOf('=');
  return at === -1 ? [text, text] : [text.slice(0, at), text.slice(at + 1)];
}

/**
 * Returns the id of the plugin for a package or URL: `filesystem` for `@modelcontextprotocol/server-filesystem`,
 * `mcp-example-com` for `https://mcp.example.com/mcp`.
 */
export function mcpPluginId(server: string): string {
  const host = URL.canParse(server) ? new URL(server).hostname : undefined;
  const name = host ?? server.slice(server.lastIndexOf('/') + 1);
  const short =
    host === undefined ? name.replace(/^(?:mcp-server-|server-|mcp-)|(?:-mcp-server|-mcp)$/g, '') : name;
  return (
    short
      .toLowerCase()
      .replace(/[^a-z0-9-]/g, '-')
      .replace(/^-+/, '') || 'server'
  );
}
