import type { LogLevel } from '../../kit/logger.ts';
import {
  adaptersAskedFor,
  type LoadedPlugin,
  type PluginFault,
  type PluginRegistry,
} from '../../plugins/index.ts';
import type { Resources } from '../define-daemon.ts';
import { adapterFaults } from './access/adapters.ts';

/**
 * Tells what is wrong with the plugins that were just loaded. Every service that runs plugins finds the same; one of them
 * `tells`, the others say it for who looks closer (level `debug`).
 */
export function createPluginReports(
  resources: Resources,
  tells: boolean,
): (registry: PluginRegistry, kept: readonly LoadedPlugin[]) => void {
  const at = (level: LogLevel): LogLevel => (tells ? level : 'debug');
  return (registry, kept) => {
    reportBroken(registry, kept, resources, at('error'));
    reportMissingAdapters(registry, resources, at('warn'));
  };
}

/** One that ran before goes on as it was, others are left out. */
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
        message: `The plugin ${id ?? folder} ${runs ? 'runs on as it was, because what is there now is broken' : 'is left out'}: ${faultText(faults)}`,
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

/** They run, and their calls of these adapters fail. */
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
