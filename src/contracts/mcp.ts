import { z } from 'zod';
import { endpoint } from './endpoint.ts';

/** Path of the MCP endpoint. Its URL is the audience of OAuth tokens. */
export const MCP_PATH = '/mcp';

/**
 * The MCP endpoint (Streamable HTTP). Bodies are JSON-RPC messages, which the MCP library validates. Answers are JSON
 * or a stream of server-sent events. @spec docs/mcp.md
 */
export const callMcp = endpoint({
  method: 'POST',
  path: MCP_PATH,
  summary: 'Exchange messages of the Model Context Protocol',
  tags: ['mcp'],
  hidden: true,
  body: z.unknown(),
  reply: z.unknown(),
  errors: ['UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMIT_EXCEEDED'],
});

/** Metadata of the MCP endpoint as a protected resource. @spec docs/mcp.md "OAuth"; RFC 9728 */
export const getMcpResource = endpoint({
  method: 'GET',
  path: '/.well-known/oauth-protected-resource/mcp',
  summary: 'Show which issuer gives tokens for the MCP endpoint',
  tags: ['mcp'],
  hidden: true,
  reply: z.object({
    resource: z.url(),
    authorization_servers: z.array(z.url()),
    bearer_methods_supported: z.tuple([z.literal('header')]),
    resource_name: z.string(),
  }),
  errors: ['NOT_FOUND'],
});
