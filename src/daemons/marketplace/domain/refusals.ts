import type { LockEntry } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors.ts';
import type { LoadedPlugin, PluginFault } from '../../../plugins/index.ts';

/** Why a change to the plugins is refused. */

/** Throws CONFLICT for another plugin than the one that is to be updated. */
export function requireSame({ id }: LoadedPlugin, wanted: string): void {
  if (id === wanted) return;
  throw new PlatformError('CONFLICT', `The source holds the plugin ${id}, not ${wanted}.`, {
    details: { pluginId: wanted, found: id },
  });
}

/** What was shown must be what is installed, though the source may have changed in between. */
export function requireAgreed(digest: string, agreed: string | undefined): void {
  if (agreed === undefined || agreed === digest) return;
  throw new PlatformError(
    'CONFLICT',
    'The source has changed since it was shown: its manifest is another one. Look at it again.',
    { details: { agreed, found: digest } },
  );
}

/** INVALID_MANIFEST, INVALID_HANDLER or what else the first fault is, with all of them in the details. */
export function faulty(id: string | undefined, faults: readonly PluginFault[]): PlatformError {
  const told = faults.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  return new PlatformError(
    faults[0]?.code ?? 'INVALID_MANIFEST',
    `The plugin ${id ?? 'there'} cannot be used: ${told.join('; ')}`,
    { details: { ...(id === undefined ? {} : { pluginId: id }), faults } },
  );
}

export function isThere(id: string, version: string, entry: LockEntry | undefined): PlatformError {
  const mend =
    entry?.origin === 'installed'
      ? ` \`svc plugins update ${id}\` replaces it.`
      : ' `svc plugins dev` has its folder read anew.';
  return new PlatformError(
    'PLUGIN_CONFLICT',
    `The plugin ${id} is there already, in version ${version} (${entry?.origin ?? 'project'}).${mend}`,
    { details: { pluginId: id, version } },
  );
}

export function unknown(id: string): PlatformError {
  return new PlatformError(
    'PLUGIN_NOT_FOUND',
    `There is no plugin "${id}"; \`svc plugins list\` shows those there are.`,
    { details: { pluginId: id } },
  );
}
