import { readFile, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Client, createClient } from '../../http/index.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import { minutes } from '../../kit/time/duration.ts';
import { isInside, type PluginRegistry } from '../../plugins/index.ts';
import { readTelemetryCounts } from '../../store/sqlite/telemetry/counts.ts';
import { createTelemetryReader, type TelemetryReader } from '../../store/sqlite/telemetry/reader.ts';
import type { DaemonServices, Resources } from '../define-daemon.ts';
import { createOAuthVerifier, type VerifyOAuth } from '../oauth/verifier.ts';
import {
  createPluginRouteTable,
  type PluginRouteTable,
  type RoutedPlugin,
} from '../plugin-routes/route-table.ts';
import { createReread, type Reread } from '../plugin-runtime/reread.ts';
import { createPluginRuntime, type PluginRuntime } from '../plugin-runtime/runtime.ts';
import { createPluginSchemas, type PluginSchemas } from './domain/plugin-schemas.ts';
import { createOperationMetrics, createTelemetryMetrics, type Observe } from './metrics.ts';

/** Installations fetch over the network; equals the gateway's timeout. */
const OWNER_TIMEOUT_MS = minutes(2);

/** Services that own parts of the REST API. */
export type Owner = 'workflow' | 'marketplace';

export interface RestServices extends DaemonServices {
  plugins: PluginRuntime;
  reread: Reread;
  /** State of the latest reload. */
  readonly table: PluginRouteTable;
  schemasOf: (plugin: RoutedPlugin) => PluginSchemas;
  owners: Record<Owner, Client>;
  observe: Observe;
  telemetry: TelemetryReader;
  internalSecret: string;
  /** Timeout of routes whose manifest sets none. */
  routeTimeoutMs: number;
  /** Host ids that may run commands and see every tenant's records. */
  admins: readonly string[];
  /** Undefined without a configured issuer. */
  verifyOAuth: VerifyOAuth | undefined;
}

/** Loads the plugins, builds their route table, and reports invalid routes. */
export async function restServices(resources: Resources): Promise<RestServices> {
  const { clock, config, dataDir, group, keys, logger, metrics, peers } = resources;
  const plugins = await createPluginRuntime(resources);
  let table = layOut(plugins.registry);
  let schemas = new Map<RoutedPlugin, PluginSchemas>();
  plugins.onReload((registry) => {
    table = layOut(registry);
    schemas = new Map();
  });

  function layOut(registry: PluginRegistry): PluginRouteTable {
    const laidOut = createPluginRouteTable([...registry.plugins]);
    reportRefused(laidOut, logger);
    return laidOut;
  }

  /** Cached per plugin version, since building them costs a process. */
  function schemasOf(plugin: RoutedPlugin): PluginSchemas {
    const found = schemas.get(plugin) ?? describe(plugin);
    schemas.set(plugin, found);
    return found;
  }

  function describe(plugin: RoutedPlugin): PluginSchemas {
    return createPluginSchemas({
      manifest: plugin.manifest,
      readJson: (file) => readPluginJson(plugin.root, file),
      printZod: (asked) => plugins.describer.schemas(plugin, asked),
      inspect: (handlers) => plugins.describer.handlers(plugin, handlers),
      clock,
    });
  }
  createTelemetryMetrics(metrics, () => readTelemetryCounts(dataDir));
  const ownerClient = (owner: Owner): Client =>
    createClient({ url: () => peers.urlOf(owner), peer: owner, timeoutMs: OWNER_TIMEOUT_MS });
  return {
    plugins,
    reread: createReread(plugins, group),
    get table() {
      return table;
    },
    schemasOf,
    owners: { workflow: ownerClient('workflow'), marketplace: ownerClient('marketplace') },
    observe: createOperationMetrics(metrics),
    telemetry: createTelemetryReader({ dataDir, clock }),
    internalSecret: keys.internalSecret,
    routeTimeoutMs: config.rest.timeoutMs,
    verifyOAuth: config.rest.oauth ? createOAuthVerifier(config.rest.oauth, { clock, logger }) : undefined,
    admins: config.gateway.admins,
  };
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

/** Size limit of schema files, which are read in this process for descriptions. */
const SCHEMA_FILE_BYTES = 4 * 1024 * 1024;

/** Reads a JSON file of a plugin; rejects links out of its folder and anything but files. */
async function readPluginJson(root: string, file: string): Promise<unknown> {
  const folder = await realpath(root);
  const path = await realpath(join(folder, file));
  if (!isInside(folder, path)) throw new Error(`${file} is outside of the plugin's folder`);
  const found = await stat(path);
  // Reading a pipe would block forever.
  if (!found.isFile() || found.size > SCHEMA_FILE_BYTES)
    throw new Error(`${file} is not a file of at most ${SCHEMA_FILE_BYTES} bytes`);
  return JSON.parse(await readFile(path, 'utf8'));
}
