import { ADAPTER_NAMES, type AdapterName, type ManifestV3 } from '../contracts/index.ts';
import { permissionSets } from './permission-sets.ts';

/** Adapters that a manifest requires, for the whole plugin or a part of it. */
export function adaptersAskedFor(manifest: ManifestV3): AdapterName[] {
  const sets = permissionSets(manifest);
  return ADAPTER_NAMES.filter((name) => sets.some(({ platform }) => platform?.[name] === true));
}
