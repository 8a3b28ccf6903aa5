import { createHash } from 'node:crypto';
import { messageOf } from '../../kit/errors.ts';
import type { Logger } from '../../kit/logger.ts';
import {
  codeFaults,
  type LoadedPlugin,
  type PluginDescriber,
  type PluginFault,
  sourceStamp,
} from '../../plugins/index.ts';
import type { RunningCode } from './running-code.ts';

/** Tells what is wrong with the code of a plugin. */
export type CodeCheck = (plugin: LoadedPlugin) => Promise<PluginFault[]>;

/**
 * Loads the code of plugins that were edited while the service runs, so that a broken edit leaves the running version in
 * place. Not at the service's start, which would wait for a process per plugin; not of installed plugins, whose files
 * were checked once and never change.
 */
export function createCodeCheck(
  describer: PluginDescriber,
  code: RunningCode,
  logger: Logger,
  isStarting: () => boolean,
): CodeCheck {
  const known = new Map<string, { stamp: string; faults: Promise<PluginFault[]> }>();

  async function check({ id, version, root, manifest, ...rest }: LoadedPlugin, stamp: string) {
    // The version names the process: one that has loaded older code must not answer for this one.
    const edited = { ...rest, id, root, manifest, version: `${version}+${digestOf(stamp)}` };
    try {
      return await codeFaults(edited, describer);
    } catch (error) {
      logger.warn(`The changed code of ${id} could not be checked; its calls will tell: ${messageOf(error)}`);
      return [];
    }
  }
  return async (plugin) => {
    if (plugin.locked?.integrity) return [];
    const stamp = sourceStamp(plugin.root, plugin.manifest);
    const before = known.get(plugin.root);
    // Linking has just loaded the code of a folder.
    const isTrusted = isStarting() || (before === undefined && plugin.locked !== undefined);
    const isKnown = before?.stamp === stamp;
    const faults = isKnown ? before.faults : isTrusted ? Promise.resolve([]) : check(plugin, stamp);
    known.set(plugin.root, { stamp, faults });
    if ((await faults).length === 0) code.take(plugin, stamp);
    return faults;
  };
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
