import type { Environment } from '../../kit/config.ts';
import { masterKeyId } from '../../kit/keys.ts';
import type { DataFolder } from './data-folder.ts';
import { readKeys } from './keys-file.ts';

/** The master key that seals secrets here, by its id; null before the first start. */
export function masterKeyInForce(
  folder: DataFolder,
  env: Environment,
): { id: string; from: 'environment' | 'keys.json' } | null {
  if (env.SVC_MASTER_KEY) return { id: masterKeyId(env.SVC_MASTER_KEY), from: 'environment' };
  const kept = readKeys(folder);
  return kept && { id: masterKeyId(kept.masterKey), from: 'keys.json' };
}
