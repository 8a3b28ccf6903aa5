import { type Caller, type PlatformConfig, pluginPackage } from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { packFolder } from '../../../plugins/index.ts';
import type { HostStore } from '../../../store/ports/index.ts';
import type { PluginRuntime } from '../../plugin-runtime/runtime.ts';
import type { Admins } from '../domain/identity/admins.ts';

export interface PluginPackageServices {
  plugins: PluginRuntime;
  hostStore: HostStore;
  admins: Admins;
  execution: PlatformConfig['execution'];
}

/** Serves the files of plugins to the hosts that run these plugins. @spec docs/operations.md "Agents" */
export function pluginPackageRoutes(http: Http, services: PluginPackageServices): void {
  mount(http, pluginPackage, { auth: 'caller' }, async ({ params, caller, reply }) => {
    if (!(await mayFetch(caller, params.pluginId, services))) {
      throw new PlatformError('PLUGIN_NOT_FOUND', `There is no plugin "${params.pluginId}" for this host.`);
    }
    const { root } = services.plugins.registry.require(params.pluginId);
    reply.header('cache-control', 'no-store');
    return reply.type('application/vnd.svc.plugin-package').send(packFolder(root));
  });
}

/**
 * Returns whether the caller can read the plugin's code, which can be confidential. Only administrators and hosts that
 * are allowed to run the plugin can read the code.
 */
async function mayFetch(
  caller: Caller,
  pluginId: string,
  { hostStore, admins, execution }: PluginPackageServices,
): Promise<boolean> {
  if (admins.is(caller)) return true;
  const host = await hostStore.find(caller.hostId);
  if (!host || host.revokedAt !== null || host.namespaceId !== caller.namespaceId) return false;
  const { plugins } = execution;
  const own = Object.hasOwn(plugins, pluginId) ? plugins[pluginId as keyof typeof plugins] : undefined;
  if ((own?.backend ?? execution.default) !== 'host') return false;
  return own?.hostId === undefined || own.hostId === caller.hostId;
}
