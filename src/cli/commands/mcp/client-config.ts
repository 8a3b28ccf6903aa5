import type { CommandContext } from '../../context.ts';
import { selectedGateway } from '../../selected-gateway.ts';

export const MCP_CLIENTS = ['claude', 'cursor', 'vscode'] as const;
export type McpClient = (typeof MCP_CLIENTS)[number];

const INPUT = 'svc-token';

/** File of each client, the key of its servers, and how it reads a variable of the environment or asks for it. */
const CLIENTS: Record<McpClient, { file: string; key: 'mcpServers' | 'servers'; token: string }> = {
  claude: { file: '.mcp.json', key: 'mcpServers', token: '$' + '{SVC_TOKEN}' },
  cursor: { file: '.cursor/mcp.json', key: 'mcpServers', token: '$' + '{env:SVC_TOKEN}' },
  vscode: { file: '.vscode/mcp.json', key: 'servers', token: '$' + `{input:${INPUT}}` },
};

export const fileOf = (client: McpClient): string => CLIENTS[client].file;

/** Returns the configuration by which a client starts `svc mcp stdio`, with its login or with the token in SVC_TOKEN. */
export function clientConfig(
  client: McpClient,
  context: CommandContext,
  { usesToken }: { usesToken: boolean },
): Record<string, unknown> {
  const { key, token } = CLIENTS[client];
  const isCode = client === 'vscode';
  const server = {
    ...(isCode ? { type: 'stdio' } : {}),
    ...{ command: 'svc', args: argumentsOf(context) },
    ...(usesToken ? { env: { SVC_TOKEN: token } } : {}),
  };
  const input = { type: 'promptString', id: INPUT, description: 'Token of svc', password: true };
  return { ...(isCode && usesToken ? { inputs: [input] } : {}), [key]: { svc: server } };
}

function argumentsOf(context: CommandContext): string[] {
  const url = selectedGateway(context);
  return ['mcp', 'stdio', ...(url ? ['--url', url] : [])];
}
