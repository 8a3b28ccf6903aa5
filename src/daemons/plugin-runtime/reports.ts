import type { Logger } from '../../kit/logger.ts';
import {
  adaptersAskedFor,
  type BrokenPlugin,
  type PluginFault,
  type PluginRegistry,
} from '../../plugins/index.ts';
import type { Resources } from '../define-daemon.ts';
import { adapterFaults } from './access/adapters.ts';

/** Tells what is wrong with each broken plugin: one that ran before goes on as it was, others are left out. */
export function reportBroken(
  broken: readonly BrokenPlugin[],
  registry: PluginRegistry,
  logger: Logger,
): void {
  for (const { id, folder, faults } of broken) {
    const runs = id !== undefined && registry.find(id)?.root === folder;
    logger.diagnostic(
      {
        domain: 'plugins',
        event: runs ? 'plugin.kept' : 'plugin.broken',
        level: 'error',
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

/** Tells of plugins that ask for adapters the config lacks: they run, and their calls of these fail. */
export function reportMissingAdapters({ plugins }: PluginRegistry, resources: Resources): void {
  for (const { id, manifest } of plugins) {
    for (const { name, key, why } of adapterFaults(resources, adaptersAskedFor(manifest))) {
      resources.logger.diagnostic(
        {
          domain: 'plugins',
          event: 'plugin.adapter_missing',
          level: 'warn',
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
