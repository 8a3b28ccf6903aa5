import type { Environment } from '../kit/config/config.ts';
import { masterKeyId } from '../kit/security/keys.ts';
import type { DataFolder } from './data-folder.ts';
import { readKeys } from './keys-file.ts';

export interface CurrentMasterKey {
  id: string;
  from: 'environment' | 'keys.json';
  /** Ids of former master keys. These keys only decrypt. */
  previous: string[];
  /**
   * Time at which a rotation created the key, in epoch milliseconds. Null for the first key, and for a key from the
   * environment.
   */
  since: number | null;
}

/** Returns the master keys in use, or null before the first start. */
export function currentMasterKey(folder: DataFolder, env: Environment): CurrentMasterKey | null {
  const stored = readKeys(folder);
  const given = env.SVC_MASTER_KEY;
  const current = given || stored?.masterKey;
  if (!current) return null;
  const id = masterKeyId(current);
  const previous = [env.SVC_MASTER_KEY_PREVIOUS, stored?.previousMasterKey].flatMap((key) =>
    key ? [masterKeyId(key)] : [],
  );
  return {
    id,
    from: given ? 'environment' : 'keys.json',
    previous: [...new Set(previous)].filter((known) => known !== id),
    since: given ? null : (stored?.masterKeySince ?? null),
  };
}
