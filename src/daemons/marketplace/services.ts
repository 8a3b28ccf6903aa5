import { keepRunning } from '../../plugins/index.ts';
import type { DaemonServices, Resources } from '../define-daemon.ts';
import { createPluginRuntime, type PluginRuntime } from '../plugin-runtime/runtime.ts';
import { type Catalogue, createCatalogue } from './domain/catalogue.ts';
import { createInstaller, type Installer } from './domain/installer.ts';
import { createLifecycle } from './domain/lifecycle.ts';
import { createSpread } from './domain/spread.ts';

export interface MarketplaceServices extends DaemonServices {
  plugins: PluginRuntime;
  installer: Installer;
  /** As the plugins are on disk now, not as they were at the daemon's start. */
  readCatalogue: () => Promise<Catalogue>;
  /** Hosts that may change what is installed. */
  admins: readonly string[];
}

/** Builds the marketplace's parts, and clears away what interrupted installations left. */
export async function marketplaceServices(resources: Resources): Promise<MarketplaceServices> {
  const { config, projectDir, dataDir, clock, logger, random, analytics } = resources;
  const plugins = await createPluginRuntime(resources, { tellsOfPlugins: true });
  const load = () => plugins.read();
  const installer = createInstaller({
    projectDir,
    dataDir,
    describer: plugins.describer,
    load,
    lifecycle: createLifecycle(plugins, logger, random.uuid),
    spread: createSpread(resources, plugins),
    clock,
    logger,
    analytics,
  });
  await installer.sweep();
  const readCatalogue = async () => createCatalogue(keepRunning(plugins.registry, await load()));
  return { plugins, installer, readCatalogue, admins: config.gateway.admins };
}
