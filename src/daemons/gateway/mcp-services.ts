import { getCommand, listWorkflows } from '../../contracts/index.ts';
import { createClient, serviceHeaders } from '../../http/index.ts';
import { days, minutes } from '../../kit/time/duration.ts';
import type { Resources } from '../define-daemon.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import { mcpUrl } from './mcp/mcp-url.ts';
import { offeredTools } from './mcp/offered-tools.ts';
import { PluginOffers } from './mcp/plugin-offers.ts';
import { PluginTools } from './mcp/plugin-tools.ts';
import { WorkflowTools } from './mcp/workflow-tools.ts';

const TIMEOUT_MS = 5000;

/** Builds what the MCP endpoint needs besides the other services of the gateway. */
export function mcpServices(resources: Resources, plugins: PluginRuntime) {
  const { config, createLimiter, logger, keys, clock, random } = resources;
  const { oauth, mcp, cors } = config.gateway;
  return {
    mcp: {
      ...{ logger, limits: mcp, isEnabled: mcp.enabled, origins: cors.origins },
      ...toolSources(resources, plugins),
      ...{ clock, random, maxTtlMs: days(config.retention.runsDays) },
      offers: new PluginOffers(plugins),
      onOffersChanged: (listener: () => void) => void plugins.onReload(listener),
      internalSecret: keys.internalSecret,
      limiter: createLimiter('mcp calls', { windowMs: minutes(1) }),
      issuer: oauth?.issuer ?? null,
      url: () => mcpUrl(resources),
    },
  };
}

/** Returns the tools of plugins and workflows. */
function toolSources({ config, peers, keys, clock, logger }: Resources, plugins: PluginRuntime) {
  const headers = (): Record<string, string> => serviceHeaders(keys.internalSecret, { hostId: 'mcp' });
  const clientOf = (name: 'rest' | 'workflow') =>
    createClient({
      url: () => config.gateway.upstreams[name].url ?? peers.urlOf(name),
      ...{ headers, peer: `${name} service`, timeoutMs: TIMEOUT_MS },
    });
  const rest = clientOf('rest');
  const workflow = clientOf('workflow');
  const ofPlugins = new PluginTools({
    plugins,
    describe: (pluginId, commandId) =>
      rest.call(getCommand, { params: { pluginId: pluginId as never, commandId } }),
  });
  const ofWorkflows = new WorkflowTools({
    workflows: async () => (await workflow.call(listWorkflows)).items,
    clock,
  });
  return {
    tools: offeredTools({ plugins: ofPlugins, workflows: ofWorkflows, logger }),
    workflowTools: () => ofWorkflows.list(),
  };
}
