import {
  loadPlugins,
  type PluginDescriber,
  type PluginRegistry,
  projectSecrets,
} from '../../../plugins/index.ts';
import type { CommandContext } from '../../context.ts';

/** Loads the plugins of the project without a running platform. The services load plugins in the same way. */
export function loadProjectPlugins(
  { platform, folder }: Pick<CommandContext, 'platform' | 'folder'>,
  { manifest }: Pick<PluginDescriber, 'manifest'>,
): Promise<PluginRegistry> {
  const loaded = platform();
  return loadPlugins({
    projectDir: loaded.projectDir,
    patterns: loaded.config.plugins,
    dataDir: folder().root,
    secrets: projectSecrets(loaded),
    evaluate: manifest,
  });
}
