import { join } from 'node:path';
import type { LockEntry, LockFile } from '../../../contracts/index.ts';
import { NOT_SHARED_FILE, pluginsFolder } from '../../../plugins/index.ts';

export interface NotShared {
  /** Plugins of this node that the shared list lacks or has in another state. */
  differing: readonly LockEntry[];
  shared: LockFile;
  dataDir: string;
}

/** Describes how the former list of this node differs from the shared list, and how to resolve each difference. */
export function notSharedWarning({ differing, shared, dataDir }: NotShared): string {
  const differences = differing.map((entry) => differenceOf(entry, shared.plugins[entry.id], dataDir));
  return [
    'All nodes now use one list of plugins. The list of this node was different, and the shared list replaces it.',
    ...differences,
    `The files of this node stay in ${pluginsFolder(dataDir)}, and ${join(dataDir, NOT_SHARED_FILE)} lists them.`,
    'Delete that file once you no longer need them. `svc doctor` shows them until then.',
  ].join(' ');
}

/** Returns the path from which `svc plugins install` can install a plugin of this node again. */
export function sourceOf({ origin, folder }: LockEntry, dataDir: string): string {
  return origin === 'installed' ? join(pluginsFolder(dataDir), folder) : folder;
}

function differenceOf(own: LockEntry, there: LockEntry | undefined, dataDir: string): string {
  const { id, version, origin, enabled } = own;
  const source = sourceOf(own, dataDir);
  if (origin === 'project')
    return `${id} was ${enabled ? 'enabled' : 'disabled'} here; run \`svc plugins ${enabled ? 'enable' : 'disable'} ${id}\` if it should be so on all nodes.`;
  if (!there)
    return `${id} ${version} was only on this node; run \`svc plugins install ${source}\` to have it on all nodes.`;
  if (there.integrity !== own.integrity)
    return `${id} was ${version} here and is ${there.version} now; run \`svc plugins update ${id} ${source}\` to have the version of this node on all nodes.`;
  return `${id} was ${enabled ? 'enabled' : 'disabled'} here and is ${there.enabled ? 'enabled' : 'disabled'} now.`;
}
