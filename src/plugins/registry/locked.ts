import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { LockEntry } from '../../contracts/index.ts';
import { messageOf } from '../../kit/errors/errors.ts';
import type { IntegrityOf } from '../integrity.ts';
import { pluginsFolder } from '../lock-file.ts';
import type { PluginFault } from './types.ts';

/** Opens the folder of a plugin in the lock file, and verifies the digest of an installed one. */
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
    return { root, fault: changed(entry, 'its files are not those that were installed') };
  } catch (error) {
    return { root, fault: changed(entry, messageOf(error)) };
  }
}

export function folderOf(entry: LockEntry, dataDir: string): string {
  return entry.origin === 'installed' ? join(pluginsFolder(dataDir), entry.folder) : entry.folder;
}

function missing({ id, origin }: LockEntry, folder: string): PluginFault {
  const mend = origin === 'linked' ? `svc plugins unlink ${id}` : `svc plugins install it again`;
  return { code: 'INVALID_MANIFEST', path: '', message: `Its folder ${folder} does not exist; ${mend}.` };
}

function changed({ id, source }: LockEntry, why: string): PluginFault {
  return {
    code: 'INTEGRITY_MISMATCH',
    path: '',
    message: `It was changed after it was installed: ${why}. Install it again: svc plugins install ${source} (or: svc plugins uninstall ${id}).`,
  };
}
