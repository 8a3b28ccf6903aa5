import type { LockEntry } from '../../../contracts/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import type { LoadedPlugin, PluginFault } from '../../../plugins/index.ts';

/** Throws CONFLICT if the source contains a different plugin than `wanted`. */
export function requireSame({ id }: LoadedPlugin, wanted: string): void {
  if (id === wanted) return;
  throw new PlatformError('CONFLICT', `The source contains the plugin ${id}, not ${wanted}.`, {
    details: { pluginId: wanted, found: id },
  });
}

/**
 * Throws CONFLICT if `agreed` is set and differs from the digest of the manifest. The source might have changed since
 * the plan was made.
 */
export function requireAgreed(digest: string, agreed: string | undefined): void {
  if (agreed === undefined || agreed === digest) return;
  throw new PlatformError(
    'CONFLICT',
    'The source has changed since the plan was made: its manifest differs. Make a new plan.',
    { details: { agreed, found: digest } },
  );
}

/** Creates an error with the code of the first fault and all faults in the details. */
export function faulty(id: string | undefined, faults: readonly PluginFault[]): PlatformError {
  const told = faults.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  return new PlatformError(
    faults[0]?.code ?? 'INVALID_MANIFEST',
    `The plugin ${id ?? 'there'} cannot be used: ${told.join('; ')}`,
    { details: { ...(id === undefined ? {} : { pluginId: id }), faults } },
  );
}

export function alreadyExists(id: string, version: string, entry: LockEntry | undefined): PlatformError {
  const mend =
    entry?.origin === 'installed'
      ? ` Replace it with \`svc plugins update ${id}\`.`
      : ' Reload its folder with `svc plugins dev`.';
  return new PlatformError(
    'PLUGIN_CONFLICT',
    `The plugin ${id} already exists in version ${version} (${entry?.origin ?? 'project'}).${mend}`,
    { details: { pluginId: id, version } },
  );
}

export function unknown(id: string): PlatformError {
  return new PlatformError(
    'PLUGIN_NOT_FOUND',
    `There is no plugin "${id}"; list all with \`svc plugins list\`.`,
    { details: { pluginId: id } },
  );
}
