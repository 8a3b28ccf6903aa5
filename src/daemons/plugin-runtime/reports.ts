import type { LogLevel } from '../../kit/telemetry/logger.ts';
import {
  adaptersAskedFor,
  type LoadedPlugin,
  type PluginFault,
  type PluginRegistry,
} from '../../plugins/index.ts';
import type { Resources } from '../define-daemon.ts';
import { adapterFaults } from './access/adapters.ts';

/**
 * Logs the faults of the plugins that were just loaded. Every service finds the same faults, so services without
 * `reports` log at `debug`.
 */
export function createPluginReports(
  resources: Resources,
  reports: boolean,
): (registry: PluginRegistry, kept: readonly LoadedPlugin[]) => void {
  const at = (level: LogLevel): LogLevel => (reports ? level : 'debug');
  return (registry, kept) => {
    reportBroken(registry, kept, resources, at('error'));
    reportMissingAdapters(registry, resources, at('warn'));
  };
}

/**
 * Reports broken plugins. A broken plugin that was already running keeps its running version. Other broken plugins are
 * not loaded.
 */
function reportBroken(
  { broken }: PluginRegistry,
  kept: readonly LoadedPlugin[],
  { logger }: Resources,
  level: LogLevel,
): void {
  for (const { id, folder, faults } of broken) {
    const runs = kept.some((plugin) => plugin.id === id);
    logger.diagnostic(
      {
        domain: 'plugins',
        event: runs ? 'plugin.kept' : 'plugin.broken',
        level,
        reasonCode: faults[0]?.code ?? 'INVALID_MANIFEST',
        message: `The plugin ${id ?? folder} ${runs ? 'keeps its running version, because its files are broken now' : 'is broken and not loaded'}: ${faultText(faults)}`,
        outcome: 'degraded',
        evidence: { folder, faults },
      },
      id === undefined ? {} : { pluginId: id },
    );
  }
}

function faultText(faults: readonly PluginFault[]): string {
  return faults.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join('; ');
}

/** Warns about plugins whose adapters are not configured. The plugins run, but their calls of these adapters fail. */
function reportMissingAdapters({ plugins }: PluginRegistry, resources: Resources, level: LogLevel): void {
  for (const { id, manifest } of plugins) {
    for (const { name, key, why } of adapterFaults(resources, adaptersAskedFor(manifest))) {
      resources.logger.diagnostic(
        {
          domain: 'plugins',
          event: 'plugin.adapter_missing',
          level,
          reasonCode: 'ADAPTER_NOT_CONFIGURED',
          message: `The plugin ${id} asks for ctx.${name}, and ${why}: its calls will fail`,
          outcome: 'degraded',
          evidence: { key },
        },
        { pluginId: id },
      );
    }
  }
}
