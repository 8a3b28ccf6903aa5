import type { ServerContext } from '@modelcontextprotocol/server';
import type { ToolCatalog } from './catalog.ts';
import type { StateCodec } from './client-calls.ts';
import type { ClientLogs } from './client-logs.ts';
import type { McpCall, PlatformCalls } from './platform-calls.ts';
import type { PluginOffers } from './plugin-offers.ts';
import type { StreamedRequests } from './streamed-requests.ts';
import type { TaskMethodsDeps } from './tasks/task-methods.ts';
import type { ToolAccess } from './tool-access.ts';
import type { ToolCalls } from './tool-calls.ts';
import type { ToolClient } from './tool-client.ts';

/** What the methods of the protocol server use. */
export interface ProtocolServerDeps extends TaskMethodsDeps {
  catalog: ToolCatalog;
  offers: PluginOffers;
  access: ToolAccess;
  toolCalls: ToolCalls;
  platform: PlatformCalls;
  logs: ClientLogs;
  codec: StateCodec;
  streamedRequests: StreamedRequests;
  /** Returns the client of a call of `subject`: the name of a tool or prompt, or the URI of a resource. */
  clientOf(context: ServerContext, subject: string, call: McpCall): ToolClient;
}
