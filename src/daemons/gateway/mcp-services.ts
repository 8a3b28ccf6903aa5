import { minutes } from '../../kit/time/duration.ts';
import type { Resources } from '../define-daemon.ts';
import type { FindTools } from './mcp/catalog.ts';
import { mcpUrl } from './mcp/mcp-url.ts';

/** Builds what the MCP endpoint needs besides the other services of the gateway. */
export function mcpServices(resources: Resources) {
  const { config, createLimiter, logger, keys } = resources;
  const { oauth, mcp, cors } = config.gateway;
  const findTools: FindTools = async () => [];
  return {
    mcp: {
      ...{ findTools, logger, limits: mcp, isEnabled: mcp.enabled, origins: cors.origins },
      internalSecret: keys.internalSecret,
      limiter: createLimiter('mcp calls', { windowMs: minutes(1) }),
      issuer: oauth?.issuer ?? null,
      url: () => mcpUrl(resources),
    },
  };
}
