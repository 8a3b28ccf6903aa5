import { getPlugin, installPlugin, listPlugins, uninstallPlugin } from '../../../contracts/index.ts';
import { type Http, mount, mountNotImplemented } from '../../../http/index.ts';
import type { MarketplaceServices } from '../services.ts';

/** @spec REST API: marketplace */
export function pluginCatalogueRoutes(http: Http, { readCatalogue }: MarketplaceServices): void {
  mount(http, listPlugins, { auth: 'caller' }, async () => ({
    items: (await readCatalogue()).list(),
    nextCursor: null,
  }));
  mount(http, getPlugin, { auth: 'caller' }, async ({ params }) =>
    (await readCatalogue()).detail(params.pluginId),
  );
  for (const endpoint of [installPlugin, uninstallPlugin]) mountNotImplemented(http, endpoint);
}
