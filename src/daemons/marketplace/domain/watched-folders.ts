import type { Logger } from '../../../kit/telemetry/logger.ts';
import { findFolders, readLockFile, sourceDigest, sourceStamp } from '../../../plugins/index.ts';
import type { PluginRuntime } from '../../plugin-runtime/runtime.ts';
import { type SourceWatch, type Stamps, watchSources } from '../../plugin-runtime/source-watch.ts';
import type { Installer } from './installer.ts';

export interface WatchedFoldersDeps {
  projectDir: string;
  dataDir: string;
  /** Plugin folder patterns from the config's `plugins`. */
  patterns: string[];
  installer: Pick<Installer, 'touch'>;
  /** The plugin registry after the latest reload. */
  runtime: Pick<PluginRuntime, 'registry'>;
  logger: Logger;
}

/**
 * Watches the folders of project plugins and linked plugins. Each change is broadcast to every service. @spec
 * docs/decisions/0050
 */
export function watchFolders(deps: WatchedFoldersDeps): Promise<SourceWatch> {
  const { projectDir, dataDir, patterns, installer, runtime, logger } = deps;

  const everLinked = new Set<string>();
  const digests = new Map<string, { stamp: string; digest: string }>();

  /**
   * Returns a folder and the digest of its files. Reads the files only if a file's modification time or size has
   * changed.
   */
  async function digestOf(root: string): Promise<[string, string]> {
    const loaded = runtime.registry.plugins.find((plugin) => plugin.root === root)?.manifest;
    const stamp = sourceStamp(root, loaded);
    const known = digests.get(root);
    if (known?.stamp === stamp) return [root, known.digest];
    const digest = await sourceDigest(root, loaded);
    digests.set(root, { stamp, digest });
    return [root, digest];
  }

  async function stamp(): Promise<Stamps> {
    const [{ folders }, lock] = await Promise.all([findFolders(projectDir, patterns), readLockFile(dataDir)]);
    const linked = Object.values(lock.plugins).flatMap(({ origin, folder }) =>
      origin === 'linked' ? [folder] : [],
    );
    for (const root of linked) everLinked.add(root);
    return new Map(await Promise.all([...folders, ...linked].map(digestOf)));
  }
  return watchSources({
    stamp,
    // Linking or unlinking a folder already broadcasts the change.
    isNews: (root) => !everLinked.has(root),
    changed: async () => {
      await installer.touch();
      logger.info('The plugins were reloaded because their files changed');
    },
    logger,
  });
}
