import { z } from 'zod';
import { PluginId } from './ids.ts';

/**
 * Origin of a plugin. `installed` is a managed copy, `linked` is a development folder, and `project` is a folder
 * matched by `plugins` in the config.
 */
export const PluginOrigin = z.enum(['installed', 'linked', 'project']);
export type PluginOrigin = z.infer<typeof PluginOrigin>;

/** One plugin of `marketplace.lock.json`. @spec Plugin enabled flag; docs/plugins.md "The lock file" */
export const LockEntry = z.strictObject({
  id: PluginId,
  version: z.string(),
  origin: PluginOrigin,
  /** The plugin source as requested by the user, such as `@acme/orders@^1`, a path or a URL. */
  source: z.string(),
  /** The exact version to which `source` was resolved: a tarball URL with its integrity, a commit or a path. */
  resolved: z.string(),
  /**
   * The folder name below `.svc/plugins` for an installed plugin, or the absolute path of a linked or project plugin.
   */
  folder: z.string().min(1),
  /** Hash over all files. Null for linked and project plugins, because their files can change at any time. */
  integrity: z.string().startsWith('sha512-').nullable(),
  installedAt: z.iso.datetime(),
  enabled: z.boolean(),
  manifestDigest: z.string().startsWith('sha256-'),
});
export type LockEntry = z.infer<typeof LockEntry>;

/**
 * Content of `.svc/marketplace.lock.json`. Each change increments `revision`, which causes the services to reload the
 * plugins.
 */
export const LockFile = z.strictObject({
  version: z.literal(1),
  revision: z.number().int().nonnegative(),
  plugins: z.record(z.string(), LockEntry),
});
export type LockFile = z.infer<typeof LockFile>;
