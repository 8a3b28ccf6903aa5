import { createHash } from 'node:crypto';
import { messageOf } from '../../kit/errors/errors.ts';
import type { Logger } from '../../kit/telemetry/logger.ts';
import {
  codeFaults,
  type LoadedPlugin,
  type PluginDescriber,
  type PluginFault,
  sourceStamp,
} from '../../plugins/index.ts';
import type { RunningCode } from './running-code.ts';

export type CodeCheck = (plugin: LoadedPlugin) => Promise<PluginFault[]>;

/**
 * Creates the check that loads the code of edited plugins. A plugin with a broken edit keeps its running version. The
 * check is skipped at startup, for installed plugins and for newly linked plugins.
 */
export function createCodeCheck(
  describer: PluginDescriber,
  code: RunningCode,
  logger: Logger,
  isStarting: () => boolean,
): CodeCheck {
  const known = new Map<string, { stamp: string; faults: Promise<PluginFault[]> }>();

  async function check({ id, version, root, manifest, ...rest }: LoadedPlugin, stamp: string) {
    // Plugin processes are selected by version. The digest prevents a process with older code from checking the edited
    // code.
    const edited = { ...rest, id, root, manifest, version: `${version}+${digestOf(stamp)}` };
    try {
      return await codeFaults(edited, describer);
    } catch (error) {
      logger.warn(
        `The changed code of ${id} could not be validated; errors will show when it is called: ${messageOf(error)}`,
      );
      return [];
    }
  }
  return async (plugin) => {
    if (plugin.locked?.integrity) return [];
    const stamp = sourceStamp(plugin.root, plugin.manifest);
    const before = known.get(plugin.root);
    // The code of a newly linked folder is trusted, because the link operation has just validated the code.
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
