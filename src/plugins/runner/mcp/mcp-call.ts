import type { PluginContextV3 } from '../../../contracts/index.ts';
import type { PlatformCalls } from '../platform-calls.ts';

/** The execution on whose behalf a server works. */
export interface McpCall {
  context: PluginContextV3;
  calls: PlatformCalls;
}
