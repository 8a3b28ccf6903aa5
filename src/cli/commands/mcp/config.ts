import { z } from 'zod';
import type { CommandContext } from '../../context.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { selectedGateway } from '../../selected-gateway.ts';

const CLIENTS = ['claude', 'cursor', 'vscode'] as const;
type McpClient = (typeof CLIENTS)[number];

/** File of each client, and the key of its servers. */
const FILES: Record<McpClient, { file: string; key: 'mcpServers' | 'servers' }> = {
  claude: { file: '.mcp.json', key: 'mcpServers' },
  cursor: { file: '.cursor/mcp.json', key: 'mcpServers' },
  vscode: { file: '.vscode/mcp.json', key: 'servers' },
};

/** Prints the configuration of an MCP client. @spec docs/mcp.md "Connect a client" */
export const config = defineCommand({
  name: 'mcp config',
  summary: 'Print the configuration of an MCP client for this platform',
  example: 'svc mcp config claude > .mcp.json',
  args: z.object({ client: z.enum(CLIENTS).describe('the client that you use') }),
  async run({ client }, context) {
    const { file, key } = FILES[client];
    context.ui.note(
      `Save it as ${file}. The client starts \`svc mcp stdio\`, which uses your login or SVC_TOKEN.`,
    );
    const type = client === 'vscode' ? { type: 'stdio' } : {};
    return ok({ [key]: { svc: { ...type, command: 'svc', args: argumentsOf(context) } } });
  },
  text: (result) => JSON.stringify(result, null, 2),
});

function argumentsOf(context: CommandContext): string[] {
  const url = selectedGateway(context);
  return ['mcp', 'stdio', ...(url ? ['--url', url] : [])];
}
