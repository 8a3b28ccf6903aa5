import { z } from 'zod';
import { defineCommand, ok } from '../../define-command.ts';
import { clientConfig, fileOf, MCP_CLIENTS } from './client-config.ts';

/** Prints the configuration of an MCP client. @spec docs/mcp.md "Connect a client" */
export const config = defineCommand({
  name: 'mcp config',
  summary: 'Print the configuration of an MCP client for this platform',
  example: 'svc mcp config claude > .mcp.json',
  args: z.object({ client: z.enum(MCP_CLIENTS).describe('the client that you use') }),
  async run({ client }, context) {
    context.ui.note(
      `Save it as ${fileOf(client)}. The client starts \`svc mcp stdio\`, which uses your login or SVC_TOKEN.`,
    );
    return ok(clientConfig(client, context, { usesToken: false }));
  },
  text: (result) => JSON.stringify(result, null, 2),
});
