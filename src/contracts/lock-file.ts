import { z } from 'zod';
import { PluginId } from './ids.ts';

/** `installed`: a managed copy; `linked`: a development folder; `project`: matched by `plugins` in the config. */
export const PluginOrigin = z.enum(['installed', 'linked', 'project']);
export type PluginOrigin = z.infer<typeof PluginOrigin>;

/** One plugin of `marketplace.lock.json`. @spec Plugin enabled flag; docs/plugins.md "The lock file" */
export const LockEntry = z.strictObject({
  id: PluginId,
  version: z.string(),
  origin: PluginOrigin,
  /** Plugin source as requested: `@acme/orders@^1`, a path, a URL. */
  source: z.string(),
  /** The result of resolving `source`: a tarball URL with its integrity, a commit, a path. */
  resolved: z.string(),
  /** For an installed plugin, the folder name below `.svc/plugins`; otherwise an absolute path. */
  folder: z.string().min(1),
  /** Hash over all files; null if the files may change (linked and project plugins). */
  integrity: z.string().startsWith('sha512-').nullable(),
  installedAt: z.iso.datetime(),
  enabled: z.boolean(),
  manifestDigest: z.string().startsWith('sha256-'),
});
export type LockEntry = z.infer<typeof LockEntry>;

/** `.svc/marketplace.lock.json`. Each change increments `revision`, and the services reload. */
export const LockFile = z.strictObject({
  version: z.literal(1),
  revision: z.number().int().nonnegative(),
  plugins: z.record(z.string(), LockEntry),
});
export type LockFile = z.infer<typeof LockFile>;
