import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { LockEntry } from '../../contracts/index.ts';
import { messageOf } from '../../kit/errors/errors.ts';
import type { IntegrityOf } from '../integrity.ts';
import { pluginsFolder } from '../lock-file.ts';
import type { PluginFault } from './types.ts';

/**
 * Returns the real path of a plugin's folder from the lock file. Adds a fault if the folder is missing. Adds a fault if
 * the files of an installed plugin differ from the recorded digest.
 */
export async function openLocked(
  entry: LockEntry,
  dataDir: string,
  integrity: IntegrityOf,
): Promise<{ root: string; fault?: PluginFault }> {
  const folder = folderOf(entry, dataDir);
  let root: string;
  try {
    root = await realpath(folder);
  } catch {
    return { root: folder, fault: missing(entry, folder) };
  }
  if (entry.integrity === null) return { root };
  try {
    if ((await integrity(root)) === entry.integrity) return { root };
    return { root, fault: changed(entry, 'its files differ from the installed ones') };
  } catch (error) {
    return { root, fault: changed(entry, messageOf(error)) };
  }
}

export function folderOf(entry: LockEntry, dataDir: string): string {
  return entry.origin === 'installed' ? join(pluginsFolder(dataDir), entry.folder) : entry.folder;
}

function missing({ id, origin, source }: LockEntry, folder: string): PluginFault {
  const command = origin === 'linked' ? `svc plugins unlink ${id}` : `svc plugins install ${source}`;
  return {
    code: 'INVALID_MANIFEST',
    path: '',
    message: `Its folder ${folder} does not exist. Run "${command}".`,
  };
}

function changed({ id, source }: LockEntry, why: string): PluginFault {
  return {
    code: 'INTEGRITY_MISMATCH',
    path: '',
    message: `It was changed after it was installed: ${why}. Install it again: svc plugins install ${source} (or: svc plugins uninstall ${id}).`,
  };
}
