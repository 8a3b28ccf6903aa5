import { createMcpHandler, type McpHttpHandler } from '@modelcontextprotocol/server';
import type { Logger } from '../../../kit/telemetry/logger.ts';
import { callOf } from './authenticated-call.ts';
import { createStateCodec, toolClientOf } from './client-calls.ts';
import { ClientLogs } from './client-logs.ts';
import { createProtocolServer } from './protocol-server.ts';
import type { ProtocolServerDeps } from './protocol-server-deps.ts';

export interface HandlerParts extends Omit<ProtocolServerDeps, 'codec' | 'logs' | 'clientOf'> {
  internalSecret: string;
  logger: Logger;
}

/**
 * Creates the handler of `/mcp`. It serves the revision 2026-07-28, and earlier ones without sessions. Load this module
 * on first use, because the MCP library costs memory and start-up time.
 */
export function createHandler({ logger, internalSecret, ...parts }: HandlerParts): McpHttpHandler {
  const codec = createStateCodec(internalSecret);
  const logs = new ClientLogs();
  const deps: ProtocolServerDeps = {
    ...{ ...parts, codec, logs },
    clientOf: (context, subject, call) => toolClientOf(context, subject, { codec, logs, call }),
  };
  return createMcpHandler(
    ({ era, authInfo }) => createProtocolServer(deps, callOf(authInfo), era === 'modern'),
    { onerror: (error) => logger.debug(`MCP request: ${error.message}`) },
  );
}
