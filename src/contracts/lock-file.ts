import { z } from 'zod';
import { PluginId } from './ids.ts';

/**
 * Origin of a plugin. `installed` plugins are managed copies. `linked` plugins are development folders. `project`
 * plugins are folders that match `plugins` in the config.
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
  /** Folder name below `.svc/plugins` for an installed plugin. Absolute path for a linked or project plugin. */
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
  /** Set in the lock file of a node that follows the list of a shared store. */
  shared: z.literal(true).optional(),
});
export type LockFile = z.infer<typeof LockFile>;
