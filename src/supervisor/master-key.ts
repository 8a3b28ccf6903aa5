import type { Environment } from '../kit/config/config.ts';
import { masterKeyId } from '../kit/security/keys.ts';
import type { DataFolder } from './data-folder.ts';
import { readKeys } from './keys-file.ts';

/** Returns the id and source of the current master key, or null before the first start. */
export function currentMasterKey(
  folder: DataFolder,
  env: Environment,
): { id: string; from: 'environment' | 'keys.json' } | null {
  if (env.SVC_MASTER_KEY) return { id: masterKeyId(env.SVC_MASTER_KEY), from: 'environment' };
  const stored = readKeys(folder);
  return stored && { id: masterKeyId(stored.masterKey), from: 'keys.json' };
}
