import { z } from 'zod';
import { PluginId } from './ids.ts';

/** `installed`: a copy of ours; `linked`: a folder under development; `project`: matched by the config's `plugins`. */
export const PluginOrigin = z.enum(['installed', 'linked', 'project']);
export type PluginOrigin = z.infer<typeof PluginOrigin>;

/** One plugin of `marketplace.lock.json`. @spec Plugin enabled flag; docs/plugins.md "The lock file" */
export const LockEntry = z.strictObject({
  id: PluginId,
  version: z.string(),
  origin: PluginOrigin,
  /** As it was asked for: `@acme/orders@^1`, a path, a URL. */
  source: z.string(),
  /** What that turned out to be: a tarball's URL with its integrity, a commit, a path. */
  resolved: z.string(),
  /** Installed: the folder's name below `.svc/plugins`; else an absolute path. */
  folder: z.string().min(1),
  /** Covers every file of the folder; null where files may change (linked, project). */
  integrity: z.string().startsWith('sha512-').nullable(),
  installedAt: z.iso.datetime(),
  enabled: z.boolean(),
  manifestDigest: z.string().startsWith('sha256-'),
});
export type LockEntry = z.infer<typeof LockEntry>;

/** `.svc/marketplace.lock.json`; `revision` grows with each change, and the services load anew. */
export const LockFile = z.strictObject({
  version: z.literal(1),
  revision: z.number().int().nonnegative(),
  plugins: z.record(z.string(), LockEntry),
});
export type LockFile = z.infer<typeof LockFile>;
