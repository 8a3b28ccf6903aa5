import { loadPlugins } from '../../plugins/index.ts';
import type { DaemonServices, Resources } from '../define-daemon.ts';
import { type Catalogue, readCatalogue } from './domain/catalogue.ts';

export interface MarketplaceServices extends DaemonServices {
  readCatalogue: () => Promise<Catalogue>;
}

/** Builds the marketplace's parts. */
export function marketplaceServices({ config, projectDir }: Resources): MarketplaceServices {
  return { readCatalogue: () => readCatalogue(() => loadPlugins({ projectDir, patterns: config.plugins })) };
}
