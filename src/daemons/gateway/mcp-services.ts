import { getCommand, listWorkflows } from '../../contracts/index.ts';
import { createClient, serviceHeaders } from '../../http/index.ts';
import { days, minutes } from '../../kit/time/duration.ts';
import type { Resources } from '../define-daemon.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import type { FindTools } from './mcp/catalog.ts';
import { mcpUrl } from './mcp/mcp-url.ts';
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
      ...toolFinder(resources, plugins),
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

/** Returns a function that finds the tools of plugins and workflows. Tools of plugins win over those of workflows. */
function toolFinder({ config, peers, keys, clock, logger }: Resources, plugins: PluginRuntime) {
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
  const findTools: FindTools = async (call) => {
    const [own, others] = await Promise.all([ofPlugins.list(call), ofWorkflows.list()]);
    const names = new Set(own.map(({ name }) => name));
    const refused = others.filter(({ name }) => names.has(name));
    if (refused.length > 0)
      logger.warn(
        `Tools of workflows have names of plugin tools and are not offered: ${refused.map(({ name }) => name).join(', ')}. Set mcp.name.`,
      );
    return [...own, ...others.filter(({ name }) => !names.has(name))];
  };
  return { findTools, workflowTools: () => ofWorkflows.list() };
}
