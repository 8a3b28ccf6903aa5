import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { defineCommand, streamed } from '../../define-command.ts';
import { sendToGateway } from '../../gateway-client.ts';
import { StdioBridge } from './stdio-bridge.ts';

/** Connects clients that start a program to the MCP endpoint. @spec docs/mcp.md "Connect a client" */
export const stdio = defineCommand({
  name: 'mcp stdio',
  summary: 'Connect an MCP client on stdin and stdout to the platform',
  example: 'svc mcp stdio',
  streams: 'always',
  args: z.object({}),
  async run(_args, context) {
    const bridge = new StdioBridge({
      send: (request) => sendToGateway(context, '/mcp', request),
      write: async (line) => {
        if (!process.stdout.write(`${line}\n`)) await once(process.stdout, 'drain');
      },
    });
    for await (const line of createInterface({ input: process.stdin })) bridge.take(line);
    await bridge.settled();
    return streamed(0);
  },
});
