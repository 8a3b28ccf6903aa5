import {
  disablePlugin,
  enablePlugin,
  getPlugin,
  installPlugin,
  linkPlugin,
  listPlugins,
  planPlugin,
  reloadPlugins,
  uninstallPlugin,
  unlinkPlugin,
  updatePlugin,
} from '../../../contracts/index.ts';
import { type Http, mount } from '../../../http/index.ts';
import { requireOperator } from '../../operator.ts';
import type { MarketplaceServices } from '../services.ts';

/** @spec REST API: marketplace */
export function pluginCatalogueRoutes(http: Http, services: MarketplaceServices): void {
  const { installer, readCatalogue, admins } = services;
  const caller = { auth: 'caller' } as const;
  const detail = async (id: string) => (await readCatalogue()).detail(id);
  const record = async (id: string) => (await readCatalogue()).record(id);

  // An installation can take minutes, so a shutdown cancels the installation.
  http.addHook('preClose', async () => installer.stop());

  mount(http, listPlugins, caller, async () => ({
    items: (await readCatalogue()).list(),
    nextCursor: null,
  }));
  mount(http, getPlugin, caller, ({ params }) => detail(params.pluginId));

  mount(http, planPlugin, caller, ({ body, caller }) => {
    requireOperator(caller, admins, 'look into plugins to install');
    return installer.plan(body, caller.namespaceId);
  });
  mount(http, installPlugin, caller, async ({ body, caller }) => {
    requireOperator(caller, admins, 'install plugins');
    return detail(await installer.install(body.source, body, caller.namespaceId));
  });
  mount(http, updatePlugin, caller, async ({ params, body, caller }) => {
    requireOperator(caller, admins, 'update plugins');
    return detail(await installer.update(params.pluginId, body, caller.namespaceId));
  });
  mount(http, uninstallPlugin, caller, async ({ params, caller }) => {
    requireOperator(caller, admins, 'uninstall plugins');
    await installer.uninstall(params.pluginId);
    return { uninstalled: true as const };
  });
  mount(http, enablePlugin, caller, async ({ params, caller }) => {
    requireOperator(caller, admins, 'enable plugins');
    await installer.setEnabled(params.pluginId, true);
    return record(params.pluginId);
  });
  mount(http, disablePlugin, caller, async ({ params, caller }) => {
    requireOperator(caller, admins, 'disable plugins');
    await installer.setEnabled(params.pluginId, false);
    return record(params.pluginId);
  });
  mount(http, linkPlugin, caller, async ({ body, caller }) => {
    requireOperator(caller, admins, 'link plugins');
    return detail(await installer.link(body.folder));
  });
  mount(http, unlinkPlugin, caller, async ({ params, caller }) => {
    requireOperator(caller, admins, 'unlink plugins');
    await installer.unlink(params.pluginId);
    return { unlinked: true as const };
  });
  mount(http, reloadPlugins, caller, async ({ caller }) => {
    requireOperator(caller, admins, 'reload plugins');
    return { revision: await installer.touch() };
  });
}
