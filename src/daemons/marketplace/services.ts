import type { DaemonServices, Resources } from '../define-daemon.ts';
import { createPluginRuntime, type PluginRuntime } from '../plugin-runtime/runtime.ts';
import { type Catalogue, readCatalogue } from './domain/catalogue.ts';
import { createInstaller, type Installer } from './domain/installer.ts';
import { createLifecycle } from './domain/lifecycle.ts';

export interface MarketplaceServices extends DaemonServices {
  plugins: PluginRuntime;
  installer: Installer;
  readCatalogue: () => Promise<Catalogue>;
  /** Hosts that may change what is installed. */
  admins: readonly string[];
}

/** Builds the marketplace's parts, and clears away what interrupted installations left. */
export async function marketplaceServices(resources: Resources): Promise<MarketplaceServices> {
  const { config, projectDir, dataDir, clock, logger, random, analytics } = resources;
  const plugins = await createPluginRuntime(resources);
  const load = () => plugins.read();
  const installer = createInstaller({
    projectDir,
    dataDir,
    describer: plugins.describer,
    load,
    lifecycle: createLifecycle(plugins, logger, random.uuid),
    clock,
    logger,
    analytics,
  });
  await installer.sweep();
  return { plugins, installer, readCatalogue: () => readCatalogue(load), admins: config.gateway.admins };
}
