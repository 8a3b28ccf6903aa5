import type { Logger } from '../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import type { PluginRegistry } from '../../../plugins/index.ts';
import {
  createPluginRouteTable,
  type PluginRouteTable,
  type RoutedPlugin,
} from '../../plugin-routes/route-table.ts';
import type { PluginRuntime } from '../../plugin-runtime/runtime.ts';
import { readPluginJson } from '../../plugin-runtime/schemas/plugin-json.ts';
import { PluginSchemas } from './plugin-schemas.ts';

export interface LoadedRoutesDeps {
  plugins: Pick<PluginRuntime, 'registry' | 'describer' | 'onReload'>;
  clock: Clock;
  logger: Logger;
}

/** Routes of the loaded plugins and their schemas. Each reload replaces the routes and the schemas. */
export class LoadedRoutes {
  readonly #deps: LoadedRoutesDeps;
  #table: PluginRouteTable;
  #schemas = new Map<RoutedPlugin, PluginSchemas>();

  constructor(deps: LoadedRoutesDeps) {
    this.#deps = deps;
    this.#table = this.#layOut(deps.plugins.registry);
    deps.plugins.onReload((registry) => {
      this.#table = this.#layOut(registry);
      this.#schemas = new Map();
    });
  }

  /** The route table of the latest reload. */
  get table(): PluginRouteTable {
    return this.#table;
  }

  /**
   * Returns the plugin's schemas. The schemas are cached until the next plugin reload, because reading schemas from
   * code requires a process.
   */
  schemasOf(plugin: RoutedPlugin): PluginSchemas {
    const found = this.#schemas.get(plugin) ?? this.#describe(plugin);
    this.#schemas.set(plugin, found);
    return found;
  }

  #describe(plugin: RoutedPlugin): PluginSchemas {
    const { describer } = this.#deps.plugins;
    return new PluginSchemas({
      manifest: plugin.manifest,
      readJson: (file) => readPluginJson(plugin.root, file),
      printZod: (asked) => describer.schemas(plugin, asked),
      inspect: (handlers) => describer.handlers(plugin, handlers),
      clock: this.#deps.clock,
    });
  }

  #layOut(registry: PluginRegistry): PluginRouteTable {
    const table = createPluginRouteTable([...registry.plugins]);
    reportRefused(table, this.#deps.logger);
    return table;
  }
}

function reportRefused(table: PluginRouteTable, logger: Logger): void {
  for (const { pluginId, code, path, message } of table.faults) {
    logger.diagnostic(
      {
        domain: 'plugins',
        event: 'plugin.route_refused',
        level: 'warn',
        reasonCode: code,
        message: `${pluginId}: ${path}: ${message}`,
        outcome: 'degraded',
        evidence: { path },
      },
      { pluginId },
    );
  }
}
