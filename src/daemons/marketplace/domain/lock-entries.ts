import type { LockEntry, LockFile, PluginId, PluginOrigin } from '../../../contracts/index.ts';
import { ownValue } from '../../../kit/data/own-value.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { Clock } from '../../../kit/time/clock.ts';
import { type LoadedPlugin, manifestDigest } from '../../../plugins/index.ts';
import type { PluginLock } from './plugin-lock.ts';
import { unknown } from './refusals.ts';

/** Source and location of a plugin. The other fields of a lock file entry come from the plugin's manifest. */
export type Provenance = Pick<LockEntry, 'origin' | 'source' | 'resolved' | 'folder' | 'integrity'>;

/** Lock file entries. Each write commits a change and resolves when all services have reloaded. */
export interface LockEntries {
  read(): Promise<LockFile>;
  /** Creates the entry of a new or updated plugin. */
  entryFor(plugin: LoadedPlugin, provenance: Provenance, enabled?: boolean): LockEntry;
  save(lock: LockFile, entry: LockEntry): Promise<void>;
  remove(lock: LockFile, id: string): Promise<void>;
}

export function createLockEntries(list: PluginLock, clock: Clock): LockEntries {
  const write = ({ revision }: LockFile, plugins: LockFile['plugins']): Promise<void> =>
    list.write({ version: 1, revision: revision + 1, plugins });
  return {
    read: () => list.read(),
    entryFor: ({ id, version, manifest }, provenance, enabled = true) => ({
      id: id as PluginId,
      version,
      ...provenance,
      installedAt: new Date(clock.now()).toISOString(),
      enabled,
      manifestDigest: manifestDigest(manifest),
    }),
    async save(lock, entry) {
      await write(lock, { ...lock.plugins, [entry.id]: entry });
    },
    async remove(lock, id) {
      const { [id]: _, ...rest } = lock.plugins;
      await write(lock, rest);
    },
  };
}

export function entryOf(lock: LockFile, id: string): LockEntry | undefined {
  return ownValue(lock.plugins, id);
}

/**
 * Returns the entry of an installed plugin. Throws PLUGIN_NOT_FOUND if the plugin has no entry. Throws CONFLICT if the
 * plugin's folder is used in place, because there is no installed copy.
 */
export function requireInstalled(lock: LockFile, id: string): LockEntry {
  const entry = entryOf(lock, id);
  if (entry?.origin === 'installed') return entry;
  if (!entry) throw unknown(id);
  throw nothingToUpdate(id, entry.origin);
}

export function nothingToUpdate(id: string, origin: PluginOrigin): PlatformError {
  return new PlatformError(
    'CONFLICT',
    `${id} is ${origin}: its folder is used in place, so there is nothing to update.`,
  );
}

/** Returns the provenance of a plugin that runs from its own folder without a copy. */
export function usedInPlace(
  origin: Exclude<PluginOrigin, 'installed'>,
  { root }: LoadedPlugin,
  source: string,
): Provenance {
  return { origin, source, resolved: root, folder: root, integrity: null };
}
